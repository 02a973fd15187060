// Starts the command of a copy once, and terminates it when Ctrl-C interrupts its start.
import { randomUUID } from 'node:crypto'
import type { ExecRequest } from '../../shared/api/exec.ts'
import type { ExecStarted } from '../../shared/api/processes.ts'
import type { EdgeClient } from '../connection/client.ts'
import { invalidDataError } from '../connection/server-data.ts'

/** Returns the id of the process. @throws CliError when the command cannot be started; the reason of the signal */
export async function startOnce(
  edge: EdgeClient,
  request: ExecRequest,
  signal: AbortSignal,
): Promise<string> {
  const headers = { 'idempotency-key': randomUUID() }
  const start = (client: EdgeClient) => client.requestJson<ExecStarted>('POST', '/exec', request, headers)
  try {
    const { processId } = await start(edge)
    if (typeof processId === 'string') return processId
  } catch (error) {
    if (signal.aborted) await terminateStarted(edge.forCleanup(), start)
    throw error
  }
  throw invalidDataError('a response without a processId')
}

/** The repeated request finds the command, or starts it: both are terminated. */
async function terminateStarted(
  edge: EdgeClient,
  start: (edge: EdgeClient) => Promise<ExecStarted>,
): Promise<void> {
  try {
    const { processId } = await start(edge)
    await edge.requestJson('DELETE', `/exec/${encodeURIComponent(processId)}`)
  } catch {
    // The box terminates an attached command after the disconnect timeout.
  }
}
