// box ssh-config: prints OpenSSH configuration for boxes.

import { userInfo } from 'node:os'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { Box } from '../../shared/api/boxes.ts'
import type { ExecResult } from '../../shared/api/exec.ts'
import { shellQuote } from '../../shared/shell-quote.ts'
import { findCoordinator } from '../connection/find-coordinator.ts'
import type { RunAction, Session } from '../connection/session.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { print, printMessage, sanitize } from '../output/print.ts'
import { DEFAULT_DATA_PARENT, PROJECT_DIR } from '../project-directory.ts'

export function addSshConfigCommand(program: Command, runAction: RunAction): void {
  program
    .command('ssh-config')
    .summary('print OpenSSH configuration for boxes')
    .description(
      'Prints an OpenSSH host box-NAME for each box, and creates a key at the first use. With it, ssh, scp, sftp, rsync, git ' +
        'and editors connect to boxes through the coordinator. The machine of the box needs the OpenSSH server, but no ' +
        'running sshd and no open port.',
    )
    .argument('[name...]', 'names or ids of boxes (default: all boxes)')
    .addHelpText(
      'after',
      `
Examples:
  box ssh-config >~/.ssh/boxwood.config      add at the top of ~/.ssh/config: Include boxwood.config
  ssh box-fig
  scp -r src box-fig:
  rsync -a src/ box-fig:src/
  git clone box-fig:repository

Run \`box ssh-config\` again when a box was created. Without the OpenSSH server use \`box ssh\`, \`box exec\` and
\`box cp\`.`,
    )
    .action((names: string[]) => runAction((session) => printConfig(session, names)))
}

async function printConfig(session: Session, names: string[]): Promise<undefined> {
  const { createClientKeyUnlessExists, getClientKeyPath } = await import('../openssh/client-key.ts')
  const { formatConfigEntry, getProxyEnv } = await import('../openssh/config-entry.ts')
  const { client } = session
  const boxes =
    names.length > 0
      ? await Promise.all(names.map((name) => client.findBox(name)))
      : (await client.request<{ boxes: Box[] }>('GET', '/boxes?live=1')).boxes
  const keyPath = getClientKeyPath()
  createClientKeyUnlessExists(keyPath)
  const config = findCoordinator(process.env, process.cwd(), DEFAULT_DATA_PARENT)
  if (config.keySource === 'BOXWOOD_API_KEY')
    printMessage(
      'the configuration does not contain the API key: ssh needs BOXWOOD_API_KEY in its environment.',
    )
  const boxCommand = ['env', ...getProxyEnv(config), shellQuote(resolve(PROJECT_DIR, 'box'))].join(' ')
  for (const box of boxes)
    print(
      formatConfigEntry({ boxName: box.hostname, user: await findUser(session, box), keyPath, boxCommand }),
    )
}

/** The users of isolated boxes: of those that share the programs of the machine, and of those with an image. */
const BOX_USER = 'box'
const ROOT_USER = 'root'

/** The name of the box user. A box without isolation has a user of its host. */
async function findUser(
  { client }: Session,
  { hostname, image, isolation, observedState }: Box,
): Promise<string> {
  if (image !== null) return ROOT_USER
  if (isolation?.level !== 'process') return BOX_USER
  if (observedState !== 'running') return userInfo().username
  const edge = await client.createEdgeClient(hostname)
  const { stdout } = await edge.requestJson<ExecResult>('POST', '/exec', { command: 'id -un' })
  const user = stdout.trim()
  if (/^[A-Za-z0-9._-]+$/.test(user)) return user
  throw new CliError(EXIT.failed, `Box ${hostname} has no valid user name: '${sanitize(user)}'.`)
}
