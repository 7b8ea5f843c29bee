# SPDX-License-Identifier: BSD-3-Clause
# The simulators run the products' own sources; some have deliberate defects that a simulation switches on, so that it can be seen
# to find them. The products have none: a table beside the simulator (defects.txt) says what is different in its copy.

# Of a library's sources those that the table leaves as they are, for an object library: the product and the simulator's copy of it
# have the same objects of them. A header in the table would change files that the table does not name, so it may have none.
function(ha_list_unchanged result table folder)
  file(STRINGS ${CMAKE_SOURCE_DIR}/${table} changed REGEX "^in ")
  if(changed MATCHES "\\.h(;|$)")
    message(FATAL_ERROR "${table}: a header has defects, so what includes it cannot be shared with the product")
  endif()
  set(unchanged ${ARGN})
  list(TRANSFORM changed REPLACE "^in ${folder}/" "")
  list(REMOVE_ITEM unchanged ${changed})
  set(${result} ${unchanged} PARENT_SCOPE)
endfunction()

# A library's sources as the simulator builds them: those in the table come from a changed copy. Headers too, which the library's
# users then include in place of the product's. FOLDER: of the sources, from the root; HEADER: declares the defects.
function(ha_sources_with_defects library table folder header)
  set(copies ${CMAKE_BINARY_DIR}/sim/defects/${library})
  file(STRINGS ${CMAKE_SOURCE_DIR}/${table} changed REGEX "^in ")
  list(TRANSFORM changed REPLACE "^in " "")
  foreach(file ${changed})
    add_custom_command(
      OUTPUT ${copies}/${file}
      COMMAND awk -v file=${file} -v header=${header} -f ${CMAKE_SOURCE_DIR}/sim/kit/defects.awk ${CMAKE_SOURCE_DIR}/${table}
              ${CMAKE_SOURCE_DIR}/${file} > ${copies}/${file}
      DEPENDS ${CMAKE_SOURCE_DIR}/${file} ${CMAKE_SOURCE_DIR}/${table} ${CMAKE_SOURCE_DIR}/sim/kit/defects.awk
      COMMENT "Deliberate defects into ${file}"
      VERBATIM)
    get_filename_component(at ${copies}/${file} DIRECTORY)
    file(MAKE_DIRECTORY ${at})
    target_sources(${library} PRIVATE ${copies}/${file})
  endforeach()
  get_filename_component(beside ${CMAKE_SOURCE_DIR}/${header} DIRECTORY)
  target_sources(${library} PRIVATE ${beside}/mutation.c)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${table})
  foreach(source ${ARGN})
    if(NOT "${folder}/${source}" IN_LIST changed)
      target_sources(${library} PRIVATE ${CMAKE_SOURCE_DIR}/${folder}/${source})
    endif()
  endforeach()
  target_compile_options(${library} PUBLIC "SHELL:-iquote ${copies}") # before the root, where the product's headers are
endfunction()
