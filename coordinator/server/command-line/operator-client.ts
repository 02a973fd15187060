// Sends requests of the operator to the coordinator that uses the data directory, with the key of its owner.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { StartError } from '../../base/start-error.ts'
import { CONTROL_PREFIX } from '../../http/prefixes.ts'
import { getStartCommand } from '../box-command.ts'
import { findRunningCoordinator } from '../running-coordinator.ts'
import { becomeOwner } from './become-owner.ts'

export type OperatorClient = {
  /** Throws StartError with the message of an error response. */
  send<Result>(method: string, path: string, body?: object): Promise<Result>
}

/** @throws StartError when no coordinator uses the data directory, or its key cannot be read */
export async function openOperatorClient(dataDir: string, signal: AbortSignal): Promise<OperatorClient> {
  becomeOwner(dataDir)
  const running = await findRunningCoordinator({ coordinatorFile: join(dataDir, 'coordinator.json') })
  if (running === null)
    throw new StartError(
      `No coordinator uses the data directory ${dataDir}. Start it with \`${getStartCommand()}\`, or set BOXWOOD_DATA.`,
    )
  const key = await readKey(join(dataDir, 'owner.key'))

  async function send<Result>(method: string, path: string, body?: object): Promise<Result> {
    const response = await fetch(`${running?.url}${CONTROL_PREFIX}${path}`, {
      method,
      signal,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (response.ok) return (text === '' ? undefined : JSON.parse(text)) as Result
    throw new StartError(`The coordinator refused the request: ${readMessage(text)}`)
  }

  return { send }
}

async function readKey(file: string): Promise<string> {
  try {
    return (await readFile(file, 'utf8')).trim()
  } catch (error) {
    throw new StartError(`The key of the owner cannot be read: ${(error as Error).message}`)
  }
}

function readMessage(text: string): string {
  try {
    const { message, error } = JSON.parse(text) as { message?: string; error?: string }
    return message ?? error ?? text
  } catch {
    return text.slice(0, 200)
  }
}
