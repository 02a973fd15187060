// Images and regions of a fake coordinator.
import {
  type Image,
  type ImageList,
  type PullProgress,
  pullImageRequestSchema,
  type RegionInfo,
} from '../../shared/api/images.ts'
import { ApiError } from '../../shared/errors.ts'
import { type FakeCoordinator, readText, sendJson } from './fake-coordinator.ts'

export type FakeImages = {
  images: Image[]
  unavailable: ImageList['unavailable']
  regions: RegionInfo[]
  /** The events of the next pulls, before the result. */
  progress: PullProgress[]
  /** The end of the next pulls: an event, or null for a lost connection. */
  end: { event: string; data: unknown } | null
  /** The end of a pull is sent afterwards. */
  released: Promise<void>
}

export const DEBIAN: Image = {
  reference: 'debian:12',
  region: 'us-east-1',
  digest: `sha256:${'ab12cd34ef56'.padEnd(64, '0')}`,
  sizeBytes: 117_000_000,
  createdAt: '2030-01-01T00:00:00Z',
}

export function addFakeImages(fake: FakeCoordinator): FakeImages {
  const state: FakeImages = {
    images: [DEBIAN],
    unavailable: [],
    regions: [],
    progress: [],
    end: null,
    released: Promise.resolve(),
  }
  fake.addRoutes([
    [/^GET \/api\/v1\/regions$/, async (_, response) => sendJson(response, { regions: state.regions })],
    [
      /^GET \/api\/v1\/images(?:\?region=(.*))?$/,
      async (_, response, [, region]) => {
        const images = state.images.filter((image) => region === undefined || image.region === region)
        sendJson(response, { images, unavailable: state.unavailable })
      },
    ],
    [
      /^POST \/api\/v1\/images$/,
      async (request, response) => {
        const { image } = pullImageRequestSchema.parse(JSON.parse(await readText(request)))
        if (image.startsWith('local/')) throw new ApiError('images_unavailable')
        if (request.headers.accept !== 'text/event-stream')
          return sendJson(response, { image: { ...DEBIAN, reference: image } })
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        const send = (event: string, data: unknown) =>
          response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
        for (const progress of state.progress) send('progress', progress)
        await state.released
        if (state.end === null) return void response.write(': lost\n\n', () => response.destroy())
        send(state.end.event, state.end.data)
        response.end()
      },
    ],
    [
      /^DELETE \/api\/v1\/images\?(.*)$/,
      async (_, response, [, query]) => {
        const { image, region = DEBIAN.region } = Object.fromEntries(new URLSearchParams(query))
        const found = state.images.find((other) => other.reference === image && other.region === region)
        if (found === undefined) throw new ApiError('image_not_found')
        if (found.reference === 'used:1') throw new ApiError('image_in_use')
        state.images = state.images.filter((other) => other !== found)
        response.writeHead(204).end()
      },
    ],
  ])
  return state
}
