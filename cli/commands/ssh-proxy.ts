// box ssh-proxy: the ProxyCommand of the configuration that box ssh-config prints.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import { LIMITS } from '../../shared/limits.ts'
import type { RunAction, Session } from '../connection/session.ts'
import { startAttached } from '../exec/attached-command.ts'
import { toExitCode } from '../processes/process-messages.ts'

/** Time for sshd to exit when ssh has terminated the proxy. */
const EXIT_TIMEOUT_MS = 5000

export function addSshProxyCommand(program: Command, runAction: RunAction): void {
  program
    .command('ssh-proxy', { hidden: true })
    .summary('connect ssh to a box (used by the configuration of box ssh-config)')
    .description(
      'Connects stdin and stdout to an sshd on a box. ssh runs this command as its ProxyCommand: see `box ssh-config`.',
    )
    .argument('<name>', "the box's name or id")
    .action((name: string) => runAction((session) => runProxy(session, name)))
}

async function runProxy(session: Session, name: string): Promise<number> {
  const { createSshdScript } = await import('../openssh/sshd-script.ts')
  const { getClientKeyPath, readPublicKey } = await import('../openssh/client-key.ts')
  const publicKey = readPublicKey(getClientKeyPath())
  const edge = await session.client.createEdgeClient(name)
  const { attachment, stopForwarding, abort } = await startAttached(edge, {
    command: createSshdScript(publicKey),
    stdin: true,
    // sshd itself detects a client that is unreachable.
    disconnectTimeoutSeconds: LIMITS.disconnectTimeoutSeconds.max,
  })
  // ssh sends SIGHUP when the connection is closed. sshd exits at the end of stdin. The command is not terminated, because
  // background processes, such as the server of an editor, continue.
  const endStdin = () => {
    stopForwarding()
    attachment.endStdin()
  }
  const onAbort = () => {
    endStdin()
    setTimeout(() => abort(session.signal.reason), EXIT_TIMEOUT_MS).unref()
  }
  session.signal.addEventListener('abort', onAbort)
  if (session.signal.aborted) onAbort()
  // ssh may exit before it has read the last output of sshd.
  const removeClosedPipeHandler = session.onClosedPipe(async () => {
    endStdin()
    await Promise.race([attachment.result.catch(() => undefined), sleep(EXIT_TIMEOUT_MS)])
  })
  try {
    const exit = await attachment.result
    return exit === null ? 0 : toExitCode(exit)
  } finally {
    removeClosedPipeHandler()
    stopForwarding()
  }
}
