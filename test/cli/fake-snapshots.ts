// Snapshots, forks and templates of a fake coordinator.
import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Box } from '../../shared/api/boxes.ts'
import {
  createSnapshotRequestSchema,
  createTemplateRequestSchema,
  forkRequestSchema,
  nameTemplateRequestSchema,
  restoreRequestSchema,
  type Snapshot,
  snapshotSchema,
} from '../../shared/api/snapshots.ts'
import { ApiError } from '../../shared/errors.ts'
import { type FakeCoordinator, sendJson } from './fake-coordinator.ts'

export type FakeSnapshots = {
  /** Newest first. */
  snapshots: Snapshot[]
  /** The parsed bodies of the requests, oldest first. */
  bodies: unknown[]
  add(fields?: Partial<Snapshot>, transient?: boolean): Snapshot
}

/** A list response shows a new snapshot once as creating, then as available. */
export function addFakeSnapshots(fake: FakeCoordinator): FakeSnapshots {
  const snapshots: Snapshot[] = []
  const transientIds = new Set<string>()
  const bodies: unknown[] = []
  const { boxes, addBox, addRoutes } = fake

  const add: FakeSnapshots['add'] = (fields = {}, transient = false) => {
    const id = `snp_${randomBytes(12).toString('hex')}`
    const snapshot = snapshotSchema.parse({ ...NEW_SNAPSHOT, id, ...fields })
    snapshots.unshift(snapshot)
    if (transient) transientIds.add(id)
    return snapshot
  }
  const findBox = (id: string): Box => {
    const box = boxes.find((candidate) => candidate.id === id)
    if (box === undefined) throw new ApiError('not_found')
    return box
  }
  const find = (id: string): Snapshot => {
    const snapshot = snapshots.find((candidate) => candidate.id === id)
    if (snapshot === undefined) throw new ApiError('not_found')
    return snapshot
  }
  const take = ({ id, hostname, tier }: Box, fields: Partial<Snapshot>, transient = false) =>
    add({ boxId: id, sourceBoxHostname: hostname, tier, status: 'creating', ...fields }, transient)
  const removeName = (templateName: string): Snapshot | null => {
    const previous = snapshots.find((snapshot) => snapshot.templateName === templateName) ?? null
    if (previous !== null) Object.assign(previous, { templateName: null, kind: 'manual' })
    return previous
  }
  async function readBody<T>(request: IncomingMessage, schema: { parse(value: unknown): T }): Promise<T> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = schema.parse(JSON.parse(Buffer.concat(chunks).toString()))
    bodies.push(body)
    return body
  }

  addRoutes([
    [
      /^GET \/api\/v1\/snapshots(\?transient=1)?$/,
      async (_, response, [, transient]) => {
        sendJson(response, { snapshots: snapshots.filter(({ id }) => transient || !transientIds.has(id)) })
        for (const snapshot of snapshots)
          if (snapshot.status === 'creating')
            Object.assign(snapshot, { status: 'available', sizeGb: 1.5, pausedMs: 35 })
      },
    ],
    [
      /^POST \/api\/v1\/snapshots$/,
      async (request, response) => {
        const { boxId, name, description = null } = await readBody(request, createSnapshotRequestSchema)
        sendJson(response, { snapshot: take(findBox(boxId), { name, description }) }, 201)
      },
    ],
    [
      /^DELETE \/api\/v1\/snapshots\/([^/]+)$/,
      async (_, response, [, id = '']) => {
        const snapshot = find(id)
        snapshots.splice(snapshots.indexOf(snapshot), 1)
        const operation = { ...DELETION, id: `dop-${id}`, targetId: id, status: 'pending' }
        sendJson(response, { snapshot: { ...snapshot, status: 'deleting' }, operation }, 202)
      },
    ],
    [
      /^GET \/api\/v1\/operations\/dop-(.+)$/,
      async (_, response, [, id]) =>
        sendJson(response, { operation: { ...DELETION, id: `dop-${id}`, targetId: id } }),
    ],
    [
      /^POST \/api\/v1\/snapshots\/([^/]+)\/restore$/,
      async (request, response, [, id = '']) => {
        const snapshot = find(id)
        const { name = 'lime', tier = snapshot.tier } = await readBody(request, restoreRequestSchema)
        sendJson(response, { box: await addBox(name, { tier, observedState: 'requested' }) }, 202)
      },
    ],
    [
      /^POST \/api\/v1\/boxes\/([^/]+)\/fork$/,
      async (request, response, [, id = '']) => {
        const source = findBox(id)
        const { name = 'lime', tier = source.tier, keepSnapshot } = await readBody(request, forkRequestSchema)
        const snapshot = take(source, { kind: 'fork', name: `fork-${name}` }, !keepSnapshot)
        sendJson(response, { box: await addBox(name, { tier, observedState: 'requested' }), snapshot }, 202)
      },
    ],
    [
      /^POST \/api\/v1\/boxes\/([^/]+)\/template$/,
      async (request, response, [, id = '']) => {
        const { name, description = null } = await readBody(request, createTemplateRequestSchema)
        removeName(name)
        const snapshot = take(findBox(id), { kind: 'template', name, templateName: name, description })
        sendJson(response, { snapshot }, 201)
      },
    ],
    [
      /^(POST|DELETE) \/api\/v1\/snapshots\/([^/]+)\/template$/,
      async (request, response, [, method, id = '']) => {
        const snapshot = find(id)
        if (method === 'DELETE') {
          Object.assign(snapshot, { templateName: null, kind: 'manual' })
          return sendJson(response, { snapshot })
        }
        const { name } = await readBody(request, nameTemplateRequestSchema)
        if (snapshot.status === 'creating') throw new ApiError('snapshot_in_progress')
        const previous = removeName(name)
        Object.assign(snapshot, { templateName: name, kind: 'template' })
        sendJson(response, { snapshot, previous })
      },
    ],
  ])
  return { snapshots, bodies, add }
}

const CREATED_AT = '2030-01-01T00:00:00.000Z'

const NEW_SNAPSHOT = {
  name: 'before',
  description: null,
  status: 'available',
  kind: 'manual',
  templateName: null,
  expiresAt: null,
  boxId: '00000000-0000-4000-8000-000000000000',
  sourceBoxHostname: 'fig',
  tier: 'lite',
  region: 'us-west-2',
  image: null,
  sizeGb: 1.5,
  pausedMs: null,
  error: null,
  createdAt: CREATED_AT,
}

const DELETION = {
  kind: 'snapshot_delete',
  status: 'completed',
  requestedAt: CREATED_AT,
  completedAt: CREATED_AT,
  error: null,
}
