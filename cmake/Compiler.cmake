# Warnings, sanitizers and the compiler cache.
add_library(myxtts_options INTERFACE)
target_compile_options(myxtts_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wpedantic>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  # It takes any reference that a function with a temporary argument returns for one into that argument.
  target_compile_options(myxtts_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-dangling-reference>)
endif()
# Only with the compiler that the project is tested with: another one's warnings must not keep a user from building.
if(MYXTTS_WERROR AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(myxtts_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()

if(MYXTTS_SANITIZE STREQUAL "address")
  set(sanitizer_flags -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(MYXTTS_SANITIZE STREQUAL "thread")
  set(sanitizer_flags -fsanitize=thread)
elseif(MYXTTS_SANITIZE STREQUAL "fuzzer")
  set(sanitizer_flags -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(MYXTTS_SANITIZE)
  message(FATAL_ERROR "MYXTTS_SANITIZE is '${MYXTTS_SANITIZE}'; it may be OFF, address, thread or fuzzer")
endif()
if(MYXTTS_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Instrumented, GCC 12 reports uninitialised members in std::regex and std::function that are not there.
  list(APPEND sanitizer_flags -Wno-maybe-uninitialized)
  if(MYXTTS_SANITIZE STREQUAL "thread")
    list(APPEND sanitizer_flags -Wno-tsan)  # libtorch's headers have fences, which it does not follow: see tests/tsan.supp
  endif()
endif()
target_compile_options(myxtts_options INTERFACE ${sanitizer_flags})
target_link_options(myxtts_options INTERFACE ${sanitizer_flags})

find_program(CCACHE ccache)
if(CCACHE)
  # What one clone has compiled serves another. Precompiled headers are cached only with this sloppiness.
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_CUDA_COMPILER_LAUNCHER})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CUDA_COMPILER_LAUNCHER})
  target_compile_options(myxtts_options INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endif()
