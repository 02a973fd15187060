// Images such as those of databases declare directories as volumes: the engine would keep their files apart from the container, and
// no snapshot would have them. Boxes get the same image without the declaration.
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import {
  encodeFile,
  encodeHeader,
  encodePadding,
  TAR_TRAILER,
  TarReader,
} from '../../container/tar-entries.ts'
import type { Engine } from '../engine.ts'
import { loadImage } from './load-image.ts'
import { OWN_REPOSITORY_PREFIX } from './reference.ts'

const REPOSITORY = `${OWN_REPOSITORY_PREFIX}/without-volumes`
const MAX_CONFIG_BYTES = 8 * 1024 * 1024

/** @param imageId `sha256:…` of the image with volumes */
export const getReferenceWithoutVolumes = (imageId: string): string => `${REPOSITORY}:${toHex(imageId)}`

/** Returns the id of the image with volumes. null: the reference is of another image. */
export const parseReferenceWithoutVolumes = (reference: string): string | null =>
  reference.startsWith(`${REPOSITORY}:`) ? `sha256:${reference.slice(REPOSITORY.length + 1)}` : null

/** Creates the image with the name of getReferenceWithoutVolumes(). The engine has its layers already. */
export async function createImageWithoutVolumes(
  engine: Engine,
  imageId: string,
  signal?: AbortSignal,
): Promise<void> {
  const { body } = await engine.http.stream({
    method: 'GET',
    path: `/images/${imageId}/get`,
    signal,
    timeoutMs: null,
  })
  const content = Readable.from(removeVolumes(body, imageId), { objectMode: false })
  const failed = new Promise<never>((_, reject) => content.once('error', reject))
  const load = async () => {
    const problem = await loadImage(engine, content, signal)
    if (problem !== undefined) throw new Error(`The engine has not loaded the image: ${problem}`)
  }
  try {
    await Promise.race([load(), failed])
  } finally {
    content.on('error', () => {}).destroy()
    body.on('error', () => {}).destroy()
  }
}

/** Yields the saved image with another configuration and name. */
async function* removeVolumes(saved: AsyncIterable<Buffer>, imageId: string): AsyncGenerator<Buffer> {
  const reader = new TarReader(saved)
  for (let entry = await reader.next(); entry !== null; entry = await reader.next()) {
    const { name, size } = entry
    if (name === `${toHex(imageId)}.json` || name === `blobs/sha256/${toHex(imageId)}`)
      yield encodeFile(name, editJson(await read(reader, size), removeDeclaration))
    else if (name === 'manifest.json')
      yield encodeFile(
        name,
        editJson(await read(reader, size), ([image]: [object]) => [
          { ...image, RepoTags: [getReferenceWithoutVolumes(imageId)] },
        ]),
      )
    // The other lists name the unchanged image.
    else if (!['repositories', 'index.json', 'oci-layout'].includes(name)) {
      yield encodeHeader(entry, entry)
      yield* reader.readContent()
      yield encodePadding(size)
    }
  }
  yield TAR_TRAILER
}

async function read(reader: TarReader, size: number): Promise<Buffer> {
  if (size > MAX_CONFIG_BYTES) throw new Error('The configuration of the image is too long.')
  return await buffer(reader.readContent())
}

type Config = { config?: { Volumes?: unknown } }

function removeDeclaration({ config, ...image }: Config): Config {
  const { Volumes: _, ...rest } = config ?? {}
  return { ...image, config: rest }
}

const editJson = <T>(content: Buffer, edit: (value: T) => unknown): Buffer =>
  Buffer.from(JSON.stringify(edit(JSON.parse(content.toString('utf8')) as T)))

const toHex = (imageId: string): string => imageId.replace(/^sha256:/, '')
