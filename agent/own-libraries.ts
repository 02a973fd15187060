// The libraries of a Node that has its own, as in containers: the programs of the box must not load them, and use the variables of
// their image, which could break this Node.

/** Set by init.sh. */
const libraries = process.env.BOXWOOD_LIBRARIES

/** init.sh has put the values of the image into variables with this prefix. */
const IMAGE_PREFIX = 'BOXWOOD_IMAGE_'
const NAMES = ['LD_LIBRARY_PATH', 'LD_PRELOAD', 'NODE_OPTIONS'] as const

/** The loader and Node have read the variables when this process was started. */
export function hideOwnLibraries(): void {
  if (libraries === undefined) return
  for (const name of NAMES) {
    const value = process.env[IMAGE_PREFIX + name]
    delete process.env[IMAGE_PREFIX + name]
    if (value) process.env[name] = value
    else delete process.env[name]
  }
}

/** The environment of another process of the same Node. */
export function createNodeEnvironment(): NodeJS.ProcessEnv {
  if (libraries === undefined) return process.env
  const { LD_PRELOAD: _, NODE_OPTIONS: __, ...rest } = process.env
  return { ...rest, LD_LIBRARY_PATH: libraries }
}
