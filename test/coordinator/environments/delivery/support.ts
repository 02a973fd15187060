// A box in a database, with a fake agent and versions of an environment in memory.
import { EventEmitter } from 'node:events'
import type { Test } from 'tap'
import type { Tunnel, TunnelCall, TunnelEvents } from '../../../../coordinator/agents/tunnel/types.ts'
import { SecretValue } from '../../../../coordinator/base/sealing/secret-value.ts'
import { updateBox } from '../../../../coordinator/boxes/store/boxes.ts'
import type { BoxRow } from '../../../../coordinator/db/schema.ts'
import { transaction } from '../../../../coordinator/db/transaction.ts'
import { EMPTY_CONFIG } from '../../../../coordinator/environments/config.ts'
import { setBoxRepos } from '../../../../coordinator/environments/delivery/box-repos.ts'
import type { EnvironmentVersions } from '../../../../coordinator/environments/types.ts'
import type { EnvironmentRepo } from '../../../../shared/api/environments.ts'
import { sqliteForTest } from '../../../support/sqlite.ts'
import { createOwner, createTestBoxService } from '../../../support/workspace.ts'

const ENVIRONMENT = 'env_0123456789'

type AgentResponse = { status: number; body?: unknown }
type AgentCall = { path: string; body: Record<string, unknown> }

/** The files of a version: path → content. */
type Files = Record<string, string>

export async function createBoxWithEnvironment(t: Test) {
  const db = await sqliteForTest(t)
  const owner = await createOwner(db)
  const boxes = createTestBoxService(db)
  const { id } = await boxes.create(owner, { name: 'plum', env: { NAME: 'value' } })
  const versions = new Map<number, Files>()
  const calls: AgentCall[] = []
  let respond = async (_call: AgentCall): Promise<AgentResponse> => ({ status: 200, body: { failed: [] } })
  const events = new EventEmitter<TunnelEvents>()
  let tunnel: Tunnel | undefined
  const change = (changes: Partial<BoxRow>) => transaction(db, (trx) => updateBox(trx, id, changes))
  await change({ observed_state: 'running', environment_id: ENVIRONMENT })

  const environments: EnvironmentVersions = {
    async loadVersion(environmentId, versionNo) {
      const files = versions.get(versionNo)
      if (files === undefined) return undefined
      return {
        environmentId,
        versionNo,
        workspaceId: owner.workspaceId,
        config: {
          ...EMPTY_CONFIG,
          files: Object.keys(files).map((path) => ({
            path,
            mode: '0600',
            fileId: path,
            size: 1,
            updatedAt: 0,
          })),
        },
      }
    },
    openFiles: async ({ versionNo }) =>
      Object.entries(versions.get(versionNo) ?? {}).map(([path, content]) => ({
        path,
        mode: '0600',
        content: new SecretValue(Buffer.from(content).toString('base64')),
      })),
  }

  async function call({ method, path, body = '' }: TunnelCall) {
    const request = { path: `${method} ${path}`, body: JSON.parse(body) }
    calls.push(request)
    const response = await respond(request)
    return { status: response.status, body: Buffer.from(JSON.stringify(response.body ?? null)) }
  }

  return {
    ...{ db, id, owner, boxes, environments, versions, calls, change },
    tunnels: {
      local: () => tunnel,
      on: (event: keyof TunnelEvents, listener: never) => void events.on(event, listener),
      off: (event: keyof TunnelEvents, listener: never) => void events.off(event, listener),
    },
    connect() {
      tunnel = { boxId: id, call } as unknown as Tunnel
      events.emit('connected', tunnel)
    },
    disconnect() {
      tunnel = undefined
    },
    /** Pins the box to a version. */
    async pin(versionNo: number, files: Files) {
      versions.set(versionNo, files)
      await change({ environment_version_no: versionNo })
    },
    setRepos: (repos: EnvironmentRepo[]) =>
      transaction(db, (trx) => setBoxRepos(trx, { id, workspace_id: owner.workspaceId }, repos, Date.now())),
    setResponse(callback: typeof respond) {
      respond = callback
    },
    readBox: () => db.selectFrom('boxes').selectAll().where('id', '=', id).executeTakeFirstOrThrow(),
    /** The reasons of the events after the creation, oldest first. */
    listReasons: async () =>
      (await boxes.get(owner, id)).events
        .map(({ reason }) => reason)
        .toReversed()
        .slice(1),
  }
}
