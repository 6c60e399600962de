# Writes config_presets.cpp from configs/*.yaml; run again whenever one of them changes.
function(embed_presets output)
  file(GLOB presets CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/configs/*.yaml)
  set(entries "")
  foreach(preset ${presets})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${preset})
    get_filename_component(name ${preset} NAME_WE)
    file(READ ${preset} yaml)
    string(APPEND entries "      {\"${name}\", R\"yaml(${yaml})yaml\"},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT [[
#include "settings/config_presets.h"

namespace myxtts {

const std::vector<ConfigPreset>& config_presets() {
  static const std::vector<ConfigPreset> presets = {
@entries@  };
  return presets;
}

}  // namespace myxtts
]])
endfunction()
