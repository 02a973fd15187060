// The name of this command as the user types it: `box`, `./box` or a path.
import { formatCommandName } from '../shared/command-name.ts'
import { IS_NPM_PACKAGE, PROJECT_DIR } from './project-directory.ts'

let name: string | undefined

/** Returns the command for messages whose lines users paste: `box` if the PATH finds this program, else a path, quoted for the shell. */
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

/** Returns the command of the coordinator in the same way. */
export const boxwoodCommand = (): string =>
  formatCommandName({
    program: 'boxwood',
    projectDir: PROJECT_DIR,
    cwd: process.cwd(),
    path: process.env.PATH,
  })

/** Replaces the name in the quoted commands of a message, such as `box ls`, also of a message of the coordinator. */
export const replaceCommandName = (message: string): string =>
  message
    .replace(/(?<=[`'])box(?= [a-z-])/g, boxCommand)
    .replace(
      /(?<=[`'])boxwood(?= (backup|restore|platform|rotate-master-key|credit|hold|release|workspaces|ledger|federation))/g,
      boxwoodCommand,
    )

/** Returns a note for help pages, whose examples contain `box`. The note is empty if the PATH finds this program. */
export function formatPathNote(): string {
  const name = boxCommand()
  return name === 'box'
    ? ''
    : `\nbox is not on your PATH. Type ${name} instead, or ${formatPathAdvice(name)}.`
}

/** What puts `box` on the PATH: an instruction without its capital letter. */
export const formatPathAdvice = (name = boxCommand()): string =>
  IS_NPM_PACKAGE ? 'put the bin directory of `npm prefix -g` first on your PATH' : `run \`${name} install\``
