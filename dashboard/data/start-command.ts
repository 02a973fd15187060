// Starts a command on a box, in the background, so that it does not depend on this page.
import type { ExecRequest } from '../../shared/api/exec.ts'
import type { ExecStarted } from '../../shared/api/processes.ts'
import { getBoxClient } from './box-clients.ts'
import { navigate } from './navigation.ts'
import { formatCommandPath } from './routes.ts'

/** Opens the page of the command. Rejects with BoxwoodError. */
export async function startCommand(
  box: { id: string; hostname: string },
  { command, cwd }: Pick<ExecRequest, 'command' | 'cwd'>,
): Promise<void> {
  const started = await getBoxClient(box.id).send<ExecStarted>('POST', 'exec', {
    body: { command, detached: true, ...(cwd && { cwd }) } satisfies ExecRequest,
  })
  navigate(formatCommandPath(box.hostname, started.processId))
}
