# Finds libtorch: CMAKE_PREFIX_PATH first, then the active Python's torch, then the project's own .venv.
# Sets MYXTTS_TORCH_FOUND to OFF or to its version and where it came from, and TORCH_CUDA_FOLDER to the folder of the
# few files that need libtorch's own CUDA headers: `torch_cuda/`, or `no_torch_cuda/` with a libtorch without CUDA.
# GLOO_FOLDER is `gloo/`, or `no_gloo/` with a libtorch that was built without it. NCCL_FOLDER is `nccl/` with a libtorch
# that has CUDA, otherwise `no_nccl/`; NCCL itself is looked for when the program runs.
set(MYXTTS_TORCH_FOUND OFF)
set(TORCH_CUDA_FOLDER no_torch_cuda)
set(GLOO_FOLDER no_gloo)
set(NCCL_FOLDER no_nccl)
if(NOT MYXTTS_TORCH STREQUAL "OFF")
  find_package(Torch QUIET)
  set(torch_origin "CMAKE_PREFIX_PATH")
  foreach(python python3 "${CMAKE_SOURCE_DIR}/.venv/bin/python")
    if(NOT Torch_FOUND)
      execute_process(COMMAND ${python} -c "import torch; print(torch.utils.cmake_prefix_path)"
                      OUTPUT_VARIABLE torch_prefix OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE torch_missing ERROR_QUIET)
      if(torch_missing EQUAL 0)
        find_package(Torch QUIET PATHS ${torch_prefix} NO_DEFAULT_PATH)
        set(torch_origin ${python})
      endif()
    endif()
  endforeach()
  if(Torch_FOUND)
    set(MYXTTS_TORCH_FOUND "${Torch_VERSION} (${torch_origin})")
    if(TARGET torch_cuda AND MYXTTS_CUDA_FOUND)
      set(TORCH_CUDA_FOLDER torch_cuda)
      set(NCCL_FOLDER nccl)
    endif()
    get_target_property(torch_definitions torch_cpu INTERFACE_COMPILE_DEFINITIONS)
    if("USE_C10D_GLOO" IN_LIST torch_definitions)
      set(GLOO_FOLDER gloo)
    endif()
  elseif(MYXTTS_TORCH STREQUAL "ON")
    message(FATAL_ERROR "MYXTTS_TORCH=ON, but libtorch was not found: pip install torch, or set CMAKE_PREFIX_PATH")
  endif()
endif()

# What model/ and train/ link. libtorch brings headers of other libraries (fmt, nlohmann) in versions of its own: its
# folders are searched last, so that every file of the program sees the same ones.
if(Torch_FOUND)
  add_library(myxtts_torch INTERFACE)
  # libtorch exports a std::filesystem of its own, from the compiler it was built with. The standard library, shared or
  # static, stands between our archives and libtorch, so that ours is the one that our headers are for.
  target_link_libraries(myxtts_torch INTERFACE "-Wl,--push-state,--no-as-needed" "-lstdc++" "-Wl,--pop-state" ${TORCH_LIBRARIES})
  foreach(library torch torch_library torch_cpu torch_cuda c10 c10_cuda)
    if(TARGET ${library})
      set_target_properties(${library} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "")
    endif()
  endforeach()
  foreach(folder ${TORCH_INCLUDE_DIRS})
    target_compile_options(myxtts_torch INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-idirafter ${folder}>")
  endforeach()
endif()
