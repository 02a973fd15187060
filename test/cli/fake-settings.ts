// Routes of a fake coordinator that change a box: resize, region and PATCH.
import type { IncomingMessage } from 'node:http'
import {
  type Box,
  moveRequestSchema,
  patchBoxRequestSchema,
  resizeRequestSchema,
} from '../../shared/api/boxes.ts'
import { ApiError } from '../../shared/errors.ts'
import { type FakeCoordinator, sendJson } from './fake-coordinator.ts'

/** Returns the parsed bodies of the requests, oldest first. A move arrives after the next request of the detail. */
export function addFakeSettings(fake: FakeCoordinator): { bodies: unknown[] } {
  const bodies: unknown[] = []
  const findBox = (id: string): Box => {
    const box = fake.boxes.find((candidate) => candidate.id === id)
    if (box === undefined) throw new ApiError('not_found')
    return box
  }
  async function readBody<T>(request: IncomingMessage, schema: { parse(value: unknown): T }): Promise<T> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = schema.parse(JSON.parse(Buffer.concat(chunks).toString()))
    bodies.push(body)
    return body
  }

  fake.addRoutes([
    [
      /^POST \/api\/v1\/boxes\/([^/]+)\/resize$/,
      async (request, response, [, id = '']) => {
        const box = findBox(id)
        const { target_tier: tier } = await readBody(request, resizeRequestSchema)
        Object.assign(box, { tier, observedState: 'resizing' })
        sendJson(response, { box }, 202)
      },
    ],
    [
      /^POST \/api\/v1\/boxes\/([^/]+)\/region$/,
      async (request, response, [, id = '']) => {
        const box = findBox(id)
        const { region } = await readBody(request, moveRequestSchema)
        Object.assign(box, { desiredRegion: region, observedState: 'migrating' })
        sendJson(response, { box }, 202)
        box.desiredRegion = null
        box.region = region
      },
    ],
    [
      /^PATCH \/api\/v1\/boxes\/([^/]+)$/,
      async (request, response, [, id = '']) => {
        const box = findBox(id)
        const {
          env,
          ttlMinutes,
          name: hostname,
          ...settings
        } = await readBody(request, patchBoxRequestSchema)
        if (env !== undefined) box.envVars = Object.entries(env).map(([name, value]) => ({ name, value }))
        if (ttlMinutes !== undefined)
          box.pauseAt = ttlMinutes === null ? null : new Date(Date.now() + ttlMinutes * 60_000).toISOString()
        if (hostname !== undefined) box.hostname = hostname
        Object.assign(box, settings)
        sendJson(response, { box })
      },
    ],
  ])
  return { bodies }
}
