// The name of this command as the user types it: `box`, `./box` or a path.
import { formatCommandName } from '../shared/command-name.ts'
import { PROJECT_DIR } from './project-directory.ts'

let name: string | undefined

/** For messages with a command to paste: `box` if the PATH finds this program, else a path, quoted for the shell. */
export function boxCommand(): string {
  name ??= formatCommandName({
    projectDir: PROJECT_DIR,
    cwd: process.cwd(),
    path: process.env.PATH,
    // Set by the script `box`.
    startedAs: process.env.BOXWOOD_COMMAND,
  })
  return name
}
