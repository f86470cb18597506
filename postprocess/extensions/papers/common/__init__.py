"""What the papers print, and what sessions measured, arranged for all of them. It may know no single paper."""
