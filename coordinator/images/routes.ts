// Routes of regions and images. Not in the spec.
import {
  IMAGE_ERROR_CODES,
  imageListSchema,
  imageResponseSchema,
  listImagesQuerySchema,
  type PullProgress,
  pullImageRequestSchema,
  type RegionInfo,
  regionListSchema,
  removeImageQuerySchema,
} from '../../shared/api/images.ts'
import { ApiError } from '../../shared/errors.ts'
import { ADMISSION_ERRORS } from '../admission/refusal.ts'
import { byKey } from '../http/access.ts'
import {
  acceptsEventStream,
  EVENT_STREAM_HEADERS,
  type EventWriter,
  formatEvent,
  serveEvents,
} from '../http/event-writer.ts'
import { type Route, type RouteInput, type RouteSchemas, route } from '../http/route.ts'
import type { ImageService, Pull } from './service.ts'

export type ImageRoutesOptions = {
  listRegions(): RegionInfo[]
  images: ImageService
  /** Aborts when the coordinator is about to stop. */
  closing: AbortSignal
}

const fieldErrorCodes = IMAGE_ERROR_CODES
const IMAGES_UNAVAILABLE =
  'The region has no images, or no region has. The field regions names those with images.'
const REGION_ERRORS = ['images_unavailable', 'invalid_image', 'invalid_region'] as const

export function imageRoutes({ listRegions, images, closing }: ImageRoutesOptions): Route[] {
  return [
    route({
      id: 'regions.list',
      method: 'GET',
      path: '/regions',
      access: byKey('boxes', 'read'),
      summary: 'List the regions in which boxes can be created, with what their boxes can do',
      description: 'A region is served by one provider: this machine, or an engine such as Docker.',
      responses: { 200: regionListSchema },
      handler: async () => ({ regions: listRegions() }),
    }),
    route({
      id: 'images.list',
      method: 'GET',
      path: '/images',
      access: byKey('boxes', 'read', { scope: 'workspace', roles: 'not_contractor' }),
      summary: 'List the images that new boxes use without a download',
      description:
        'The images are those of the engine of a region, the same for all workspaces. A box may be created from any other image: it is downloaded first. An engine that does not answer is in `unavailable`.',
      request: { query: listImagesQuerySchema },
      fieldErrorCodes,
      responses: { 200: imageListSchema },
      errors: ['images_unavailable', 'invalid_region'],
      errorDescriptions: { images_unavailable: IMAGES_UNAVAILABLE },
      handler: ({ query }) => images.list(query.region),
    }),
    route({
      id: 'images.pull',
      method: 'POST',
      path: '/images',
      access: byKey('boxes', 'write', { scope: 'workspace', roles: 'not_contractor' }),
      summary: 'Download an image, or a newer version of it',
      description:
        'Responds when the image has been downloaded. With `Accept: text/event-stream`, server-sent events: `progress` with PullProgress, then `done` with the response, or `error` with `code` and `message`. A comment is sent after 15 s without an event. Requests for the same image share a download, which ends when the last of them has disconnected. A workspace downloads one image at a time.',
      request: { body: pullImageRequestSchema },
      fieldErrorCodes,
      responses: { 200: imageResponseSchema },
      otherContentTypes: ['text/event-stream'],
      errors: [
        ...REGION_ERRORS,
        'image_not_found',
        'image_unusable',
        'image_pull_failed',
        'rate_limited',
        'control_plane_unavailable',
        ...ADMISSION_ERRORS.pull,
      ],
      errorDescriptions: {
        images_unavailable: IMAGES_UNAVAILABLE,
        image_pull_failed:
          'The image could not be downloaded, the disk of the region has less than 10 % free, or the coordinator has as many images as the operator allows. The message says which.',
        rate_limited: 'The workspace downloads another image already.',
      },
      async handler(input) {
        const { actor, body, request } = input
        if (closing.aborted) throw new ApiError('control_plane_unavailable')
        const pull = await images.preparePull(actor, body)
        if (acceptsEventStream(request.headers.accept)) return streamPull(input, pull, closing)
        return { image: await pull(AbortSignal.any([getSignal(input), closing])) }
      },
    }),
    route({
      id: 'images.delete',
      method: 'DELETE',
      path: '/images',
      access: byKey('boxes', 'write', { scope: 'workspace', roles: 'owner' }),
      summary: 'Remove a downloaded image',
      description:
        'Frees its disk space. Rejected while a box or a snapshot of any workspace has the image, and when the image comes from no registry: only the operator can remove what could not be downloaded again.',
      request: { query: removeImageQuerySchema },
      fieldErrorCodes,
      responses: { 204: null },
      errors: [
        ...REGION_ERRORS,
        'image_not_found',
        'image_in_use',
        'image_not_downloaded',
        'control_plane_unavailable',
      ],
      errorDescriptions: {
        images_unavailable: IMAGES_UNAVAILABLE,
        control_plane_unavailable: 'The engine of the region does not answer. The message says why.',
      },
      handler: ({ actor, query }) => images.remove(actor, query),
    }),
  ]
}

type Input = Pick<RouteInput<RouteSchemas>, 'request' | 'reply'>

/** Aborts when the client disconnects, or may not send the request any more. */
function getSignal({ request }: Input): AbortSignal {
  if (request.openRequest === null) throw new Error('The request is not registered as open.')
  return request.openRequest.signal
}

async function streamPull(input: Input, pull: Pull, closing: AbortSignal) {
  const { request, reply } = input
  const signal = getSignal(input)
  let sequence = 0
  reply.hijack()
  reply.raw.writeHead(200, EVENT_STREAM_HEADERS)
  reply.raw.flushHeaders()
  const options = { log: request.log, closing, signal, getPosition: () => String(sequence) }
  await serveEvents(reply.raw, options, async (writer) => {
    const progress = createProgressWriter(writer, () => String(++sequence))
    const image = await pull(writer.signal, progress.write)
    await progress.finished()
    return formatEvent('done', String(++sequence), JSON.stringify({ image }))
  })
  return reply
}

/** Writes the latest progress whenever the client has accepted the one before. */
function createProgressWriter(writer: EventWriter, nextId: () => string) {
  let latest: PullProgress | undefined
  let writing: Promise<void> | undefined
  async function drain(): Promise<void> {
    // The event `done` says more than an interrupted write.
    for (let next = latest; next !== undefined && !writer.signal.aborted; next = latest) {
      latest = undefined
      await writer.write(formatEvent('progress', nextId(), JSON.stringify(next))).catch(() => undefined)
    }
    writing = undefined
  }
  return {
    write(progress: PullProgress) {
      latest = progress
      writing ??= drain()
    },
    finished: async () => writing,
  }
}
