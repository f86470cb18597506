"""The keys of a site file: types, waivers, manual settings and variables."""
