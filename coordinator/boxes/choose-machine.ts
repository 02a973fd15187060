// Chooses the region of a new box, its provider and its image.
import type { CreateBoxRequest } from '../../shared/api/boxes.ts'
import { ApiError } from '../../shared/errors.ts'
import type { Region } from '../../shared/tiers.ts'
import type { SnapshotRow } from '../db/schema.ts'
import type { Provider } from '../providers/provider.ts'
import type { Providers } from '../providers/regions.ts'

/** The regions that new boxes can use. */
export type RegionRules = Pick<Providers, 'regions' | 'defaultRegion' | 'serves' | 'inRegion'>

/** Where the machine of a new box will be, and its image. */
export type MachineChoice = {
  region: Region
  /** The name of the provider of the region. */
  provider: string
  /** null: the provider has no images. */
  image: string | null
  imageDigest: string | null
}

type Choice = {
  input: Pick<CreateBoxRequest, 'region' | 'image'>
  /** The image of the environment of the box; null: it has none. */
  environmentImage: string | null
  /** The snapshot whose files the box gets. */
  source: Pick<SnapshotRow, 'region' | 'image' | 'image_digest'> | null
}

/**
 * A box from a snapshot is in the region of the snapshot and has its image. Throws invalid_region for a region that this
 * coordinator does not serve, images_unavailable and invalid_image.
 */
export function chooseMachine(
  { input, environmentImage, source }: Choice,
  rules: RegionRules,
): MachineChoice {
  if (source !== null) {
    const region = requireServed(source.region, rules)
    const { image, image_digest: imageDigest } = source
    return { region, provider: rules.inRegion(region).name, image, imageDigest }
  }
  const requested = input.image ?? environmentImage
  const region = chooseRegion(input.region, requested, rules)
  const provider = rules.inRegion(region)
  const origin = input.image === undefined ? 'environment' : 'request'
  const image = requested === null ? (provider.images?.defaultImage ?? null) : requested
  if (requested !== null) assertValidImage(requested, origin, provider)
  return { region, provider: provider.name, image, imageDigest: null }
}

/** The region of a request on an image: the requested one, or the first with images, beginning with the default region. */
export function chooseImageRegion(region: Region | undefined, rules: RegionRules): Region {
  const withImages = listRegionsWithImages(rules)
  if (region !== undefined) {
    if (withImages.includes(requireServed(region, rules))) return region
    throw createImagesUnavailableError(`Region ${region} has no images.`, withImages)
  }
  const { defaultRegion } = rules
  if (withImages.includes(defaultRegion)) return defaultRegion
  const [first] = withImages
  if (first !== undefined) return first
  throw createImagesUnavailableError('No region of this coordinator has images.', withImages)
}

/** The names of an image that policies and lists compare: as it was requested, and in full. */
export function listImageNames(image: string | null, provider: Provider | undefined): string[] {
  if (image === null) return []
  return [...new Set([image, getFullName(image, provider)])]
}

/** The name that is the same for all references to the image, such as docker.io/library/debian:12 for debian:12. */
export const getFullName = (image: string, provider: Provider | undefined): string =>
  provider?.images?.normalize?.(image) ?? image

const chooseRegion = (region: Region | undefined, image: string | null, rules: RegionRules): Region => {
  if (image !== null) return chooseImageRegion(region, rules)
  return region === undefined ? rules.defaultRegion : requireServed(region, rules)
}

function requireServed(region: Region, { regions, serves }: RegionRules): Region {
  if (serves(region)) return region
  throw new ApiError(
    'invalid_region',
    `region must be one of ${regions.join(', ')}: this coordinator does not serve ${region}`,
  )
}

export const listRegionsWithImages = ({ regions, inRegion }: RegionRules): Region[] =>
  regions.filter((region) => inRegion(region).images !== undefined)

/** Throws invalid_image. */
export function assertValidImage(
  image: string,
  origin: 'request' | 'environment',
  { images }: Pick<Provider, 'images'>,
): void {
  const problem = images?.findProblem(image) ?? null
  if (problem === null) return
  throw new ApiError(
    'invalid_image',
    origin === 'request' ? `image ${problem}` : `The image ${image} of the environment ${problem}.`,
  )
}

function createImagesUnavailableError(problem: string, regions: readonly Region[]): ApiError {
  const advice =
    regions.length > 0
      ? `Use one of: ${regions.join(', ')}.`
      : 'Its operator can add one: `box doctor` on its machine prints the line, and `box docs engines` says more.'
  return new ApiError('images_unavailable', `${problem} ${advice}`, { fields: { regions } })
}
