// Shared ports of a fake coordinator (spec §4.5). Links are created and ended as by the coordinator.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import {
  type CreatePortShareRequest,
  createPortShareRequestSchema,
  type PortShare,
  type PortShares,
  portShareSchema,
} from '../../shared/api/port-shares.ts'
import { ApiError } from '../../shared/errors.ts'
import { type FakeCoordinator, sendJson } from './fake-coordinator.ts'

export type FakeShares = {
  shares: PortShare[]
  listening: PortShares['listening']
  modes: PortShares['modes']
  /** The bodies of the requests to create a link. */
  bodies: unknown[]
  /** The next request to create a link gets this error. */
  refuseNext(code: string, status: number, message: string): void
}

const ALLOWED = { allowed: true } as const
const DAY_MS = 86_400_000

export function addFakeShares(fake: FakeCoordinator, base = 'localhost:7070'): FakeShares {
  const state: FakeShares = {
    shares: [],
    listening: null,
    modes: { members: ALLOWED, anyone: ALLOWED, public: ALLOWED },
    bodies: [],
    refuseNext: (error, status, message) =>
      fake.handleNext('POST /api/v1/boxes/', (response) => sendJson(response, { error, message }, status)),
  }
  const findBox = (id: string) => {
    const box = fake.boxes.find((candidate) => candidate.id === id)
    if (box === undefined) throw new ApiError('not_found')
    return box
  }
  const getSummary = (shares: PortShare[]) => ({
    enabled: state.modes.members.allowed,
    linksEnabled: state.modes.anyone.allowed,
    modes: state.modes,
    shares,
  })

  function create(boxId: string, body: CreatePortShareRequest) {
    const { port, access, expiresIn = 7 * 86_400, rewriteHost = false } = body
    const { hostname } = findBox(boxId)
    const existing = state.shares.find((share) => share.boxId === boxId && share.port === port)
    if (existing !== undefined && (access ?? existing.access) === existing.access) {
      if (body.rewriteHost !== undefined) existing.rewriteHost = rewriteHost
      return { status: 200, body: { share: existing } }
    }
    const slug = `${hostname}-${port}-${'abcdefgh23'.slice(state.bodies.length % 8)}`
    const origin = `http://${slug}.${base}`
    const share = portShareSchema.parse({
      id: `shr_${randomUUID().replaceAll('-', '')}`,
      boxId,
      hostname,
      port,
      slug,
      access: access ?? 'members',
      url: access === 'anyone' ? null : `${origin}/`,
      origin,
      rewriteHost,
      expiresAt:
        (access ?? 'members') === 'members' ? null : new Date(Date.now() + expiresIn * 1000).toISOString(),
      createdBy: 'usr_1',
      createdAt: new Date(Date.now() - DAY_MS).toISOString(),
      openCount: 0,
      lastOpenedAt: null,
    })
    state.shares = [...state.shares.filter((other) => other !== existing), share]
    const url = access === 'anyone' ? `${origin}/?boxwood_secret=s3cret` : share.url
    return {
      status: 201,
      body: {
        share: { ...share, url },
        ...(existing && { replaced: { id: existing.id, access: existing.access } }),
      },
    }
  }
  const findShare = (id: string): PortShare => {
    const share = state.shares.find((candidate) => candidate.id === id)
    if (share === undefined) throw new ApiError('not_found')
    return share
  }

  fake.addRoutes([
    [
      /^GET \/api\/v1\/boxes\/([^/]+)\/port-shares$/,
      async (_, response, [, id = '']) => {
        const shares = state.shares.filter(({ boxId }) => boxId === findBox(id).id)
        sendJson(response, { ...getSummary(shares), listening: state.listening })
      },
    ],
    [
      /^POST \/api\/v1\/boxes\/([^/]+)\/port-shares$/,
      async (request, response, [, id = '']) => {
        const body = createPortShareRequestSchema.parse(await readJson(request))
        state.bodies.push(body)
        const created = create(id, body)
        sendJson(response, created.body, created.status)
      },
    ],
    [/^GET \/api\/v1\/port-shares$/, async (_, response) => sendJson(response, getSummary(state.shares))],
    [
      /^DELETE \/api\/v1\/port-shares\/([^/]+)$/,
      async (_, response, [, id = '']) => {
        const ended = findShare(id)
        state.shares = state.shares.filter((share) => share !== ended)
        sendJson(response, { revoked: true })
      },
    ],
    [
      /^POST \/api\/v1\/port-shares\/([^/]+)\/open$/,
      async (_, response, [, id = '']) => {
        const { slug } = findShare(id)
        const expiresAt = new Date(Date.now() + 600_000).toISOString()
        sendJson(response, { url: `http://localhost:7070/share/open?slug=${slug}&code=c0de`, expiresAt })
      },
    ],
  ])
  return state
}

async function readJson(request: IncomingMessage) {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return JSON.parse(Buffer.concat(chunks).toString())
}
