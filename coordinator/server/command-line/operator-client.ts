// Sends requests of the operator to the coordinator that uses the data directory, with the key of its owner.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { OperatorWorkspace, OperatorWorkspaceList } from '../../../shared/api/operator.ts'
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
    }).catch((error: Error) => {
      signal.throwIfAborted()
      throw new StartError(`The coordinator at ${running?.url} does not respond: ${error.message}`)
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

/** In the order of their creation, newest first. */
export async function listAllWorkspaces({ send }: OperatorClient): Promise<OperatorWorkspace[]> {
  const all: OperatorWorkspace[] = []
  let before: string | null = null
  do {
    const query: string = before === null ? '' : `&before=${before}`
    const page: OperatorWorkspaceList = await send('GET', `/operator/workspaces?limit=200${query}`)
    all.push(...page.workspaces)
    before = page.nextBefore
  } while (before !== null)
  return all
}

/**
 * @param text the id, the name, or the email address of the owner
 * @throws StartError unless exactly one workspace has it
 */
export async function findWorkspaceId(client: OperatorClient, text: string): Promise<string> {
  const found = (await listAllWorkspaces(client)).filter(({ id, name, ownerEmail }) =>
    [id, name, ownerEmail].includes(text),
  )
  const [workspace, ...others] = found
  if (workspace === undefined)
    throw new StartError(
      `There is no workspace with the id, name or owner ${text}. \`boxwood workspaces\` lists them.`,
    )
  if (others.length > 0)
    throw new StartError(
      `${found.length} workspaces have the name or owner ${text}. Use one of the ids ${found.map(({ id }) => id).join(', ')}.`,
    )
  return workspace.id
}
