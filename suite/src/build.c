#include "build.h"

#include "build_info.h"
#include "source_hash.h"

#if defined(__INTEL_LLVM_COMPILER)
#define COMPILER "icx " __VERSION__
#elif defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown"
#endif

const char build_version[] = MPICOST_VERSION;
const char build_source_hash[] = MPICOST_SOURCE_HASH;
const char build_compiler[] = COMPILER;
const char build_flags[] = MPICOST_FLAGS;
