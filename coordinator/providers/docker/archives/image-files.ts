// The image of an archive, as the engines save and load it: the format of `docker save`.

import { buffer } from 'node:stream/consumers'
import {
  encodeFile,
  encodeHeader,
  encodePadding,
  rewriteTar,
  TAR_TRAILER,
  type TarEntry,
  type TarReader,
} from '../../container/tar-entries.ts'
import { ArchiveError } from '../../provider.ts'
import { getRoot, stripRoot } from './volume-files.ts'

export const IMAGE_ROOT = 'image'

const MANIFEST = 'manifest.json'
const MAX_MANIFEST_BYTES = 1024 * 1024
/** The configuration and the layers. Other files, such as an index, could name further images. */
const NAMES = [
  /^[0-9a-f]{64}(?:\/(?:VERSION|json|layer\.tar)?)?$/,
  /^[0-9a-f]{64}\.(?:json|tar)$/,
  /^blobs\/?$/,
  /^blobs\/sha256(?:\/[0-9a-f]{64})?$/,
]
/** Equal layers are links. */
const LINK = /^\.\.\/[0-9a-f]{64}(?:\/layer)?\.tar$/

/** Yields what an engine has saved, below `image/`. */
export const addImageRoot = (saved: AsyncIterable<Buffer>): AsyncGenerator<Buffer> =>
  rewriteTar(saved, ({ name, type, linkName }) => ({
    name: `${IMAGE_ROOT}/${name}`,
    ...(type === 'hard link' && { linkName: `${IMAGE_ROOT}/${linkName}` }),
  }))

/**
 * Yields what an engine can load: one image with one name. An archive can contain anything.
 * @param reference the name, whatever the archive says
 */
export async function* readImage(
  first: TarEntry,
  reader: TarReader,
  reference: string,
): AsyncGenerator<Buffer> {
  let hasManifest = false
  for (let entry: TarEntry | null = first; entry !== null; entry = await reader.next()) {
    if (getRoot(entry.name) !== IMAGE_ROOT) throw new ArchiveError('The archive has files after its image.')
    const name = stripRoot(IMAGE_ROOT, entry.name)
    if (name === MANIFEST) {
      if (hasManifest) throw new ArchiveError('The archive has several images.')
      hasManifest = true
      yield encodeFile(MANIFEST, await readManifest(entry, reader, reference))
    } else if (NAMES.some((pattern) => pattern.test(name)) && isAllowed(entry)) {
      yield encodeHeader(entry, { name })
      yield* reader.readContent()
      yield encodePadding(entry.size)
    }
  }
  if (!hasManifest) throw new ArchiveError('The archive has no image.')
  yield TAR_TRAILER
}

const isAllowed = ({ type, linkName }: TarEntry): boolean =>
  type === 'file' || type === 'directory' || (type === 'symlink' && LINK.test(linkName))

async function readManifest({ size }: TarEntry, reader: TarReader, reference: string): Promise<Buffer> {
  if (size > MAX_MANIFEST_BYTES)
    throw new ArchiveError('The description of the image of the archive is too long.')
  const content = await buffer(reader.readContent())
  let images: { Config?: unknown; Layers?: unknown }[]
  try {
    images = JSON.parse(content.toString('utf8')) as typeof images
  } catch (error) {
    throw new ArchiveError('The description of the image of the archive is damaged.', { cause: error })
  }
  const [image] = Array.isArray(images) && images.length === 1 ? images : []
  const { Config: config, Layers: layers } = image ?? {}
  if (typeof config !== 'string' || !Array.isArray(layers))
    throw new ArchiveError('The archive does not have one image.')
  return Buffer.from(JSON.stringify([{ Config: config, RepoTags: [reference], Layers: layers }]))
}
