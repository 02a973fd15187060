// The libraries of a Node that has its own, as in containers: the programs of the box must not load them.

/** Set by init.sh. */
const libraries = process.env.BOXWOOD_LIBRARIES

/** The loader has read the variable when this process was started. */
export function hideOwnLibraries(): void {
  if (libraries !== undefined) delete process.env.LD_LIBRARY_PATH
}

/** The environment of another process of the same Node. */
export const createNodeEnvironment = (): NodeJS.ProcessEnv =>
  libraries === undefined ? process.env : { ...process.env, LD_LIBRARY_PATH: libraries }
