// How the user types the commands `box` and `boxwood` of this project, for messages whose commands can be pasted into a terminal.
import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import { shellQuote } from './shell-quote.ts'

export type CommandNameOptions = {
  /** Default: box. */
  program?: 'box' | 'boxwood'
  /** The directory that contains the scripts `box` and `boxwood`. Absolute. */
  projectDir: string
  /** The directory in which the user types the command. */
  cwd: string
  /** The variable PATH. */
  path: string | undefined
  /** The path with which the script was started; undefined: another program started this process. */
  startedAs?: string | undefined
}

/** Returns the name of the program if the PATH finds this project's script, else a path, quoted for the shell. */
export function formatCommandName(options: CommandNameOptions): string {
  const { program = 'box', projectDir, cwd, path, startedAs = '' } = options
  const script = `${projectDir}/${program}`
  if (isSameFile(findOnPath(program, path), script)) return program
  if (startedAs.includes('/')) return shellQuote(startedAs)
  return cwd === projectDir ? `./${program}` : shellQuote(script)
}

/** The first executable file with this name, as the shell finds it. */
export function findOnPath(name: string, path = ''): string | null {
  const files = path.split(':').map((dir) => `${dir || '.'}/${name}`)
  return files.find(isExecutableFile) ?? null
}

export function isSameFile(a: string | null, b: string): boolean {
  try {
    return a !== null && realpathSync(a) === realpathSync(b)
  } catch {
    return false
  }
}

function isExecutableFile(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}
