// box desktop install: installs the missing packages on an enrolled machine, or prints how.
import type { DesktopStatus } from '../../shared/api/desktop.ts'
import type { Session } from '../connection/session.ts'
import { runCommand } from '../exec/run-command.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { print, printStderr } from '../output/print.ts'

type Mode = keyof DesktopStatus['install']

/** The exit codes of the script. apt-get exits with 100. */
const NEEDS_ROOT = 77
const NO_APT_GET = 78

/** @param command for root, which the coordinator has composed */
export const createScript = (command: string): string => `
command -v apt-get >/dev/null || exit ${NO_APT_GET}
if [ "$(id -u)" = 0 ]; then sudo=
elif sudo -n true >/dev/null 2>&1; then sudo='sudo -n'
else exit ${NEEDS_ROOT}
fi
$sudo apt-get update && $sudo env DEBIAN_FRONTEND=noninteractive ${command}`

/** @returns the exit code */
export async function installDesktop(session: Session, name: string, mode: Mode): Promise<number> {
  const edge = await session.client.createEdgeClient(name)
  const { boxName } = edge
  const readStatus = () => edge.requestJson<DesktopStatus>('GET', '/desktop')
  const { install, installOn } = await readStatus()
  const command = install[mode]
  if (command === null) {
    printStderr(
      `${boxName} has all programs of the mode ${mode}. Start it with \`box desktop start ${boxName}\`.`,
    )
    return EXIT.ok
  }
  if (installOn === 'coordinator') {
    printStderr(
      `${boxName} uses the programs of the machine of the coordinator. Run this line there, as root or with sudo:`,
    )
    print(command)
    return EXIT.ok
  }
  const { exitCode } = await runCommand(session, boxName, [createScript(command)], { stdin: false })
  if (exitCode === NEEDS_ROOT)
    throw new CliError(
      EXIT.failed,
      `The user of ${boxName} is not root and has no passwordless sudo. Run this line there, as root: ${command}`,
      { code: 'needs_root' },
    )
  if (exitCode === NO_APT_GET)
    throw new CliError(
      EXIT.failed,
      `${boxName} has no apt-get. Install the programs that \`box desktop ${boxName}\` lists as missing with its package manager.`,
      { code: 'no_apt_get' },
    )
  if (exitCode !== 0) return exitCode
  const after = await readStatus()
  if (after.install[mode] !== null)
    throw new CliError(EXIT.failed, `Programs are still missing. See \`box desktop ${boxName}\`.`, {
      code: 'desktop_not_installed',
    })
  printStderr(`Installed. Start it with \`box desktop start ${boxName}\`.`)
  return EXIT.ok
}
