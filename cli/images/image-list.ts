// The lists of images and of regions.
import type { Image, RegionInfo } from '../../shared/api/images.ts'
import { REGIONS } from '../../shared/tiers.ts'
import { boxCommand } from '../command-name.ts'
import type { List } from '../lists/list.ts'
import { formatAge, formatBytes } from '../output/format.ts'

const ALGORITHM = /^sha256:/
/** As docker shows them: enough to compare two images. */
const SHORT_DIGEST_LENGTH = 12

export const formatDigest = (digest: string | null): string =>
  digest === null ? '-' : digest.replace(ALGORITHM, '').slice(0, SHORT_DIGEST_LENGTH)

export const IMAGES: List<Image> = {
  columns: [
    { header: 'IMAGE', cell: ({ reference }) => reference },
    { header: 'REGION', cell: ({ region }) => region },
    { header: 'SIZE', cell: ({ sizeBytes }) => formatBytes(sizeBytes) },
    { header: 'DIGEST', cell: ({ digest }) => formatDigest(digest), isShort: true },
    {
      header: 'BUILT',
      cell: ({ createdAt }, now) => (createdAt === null ? '-' : `${formatAge(createdAt, now)} ago`),
      isRelativeTime: true,
    },
    { header: 'CREATED', cell: ({ createdAt }) => createdAt ?? '-', isWide: true },
    { header: 'DIGEST', cell: ({ digest }) => digest ?? '-', isWide: true },
  ],
  getId: ({ reference, region, digest }) => `${region} ${reference} ${digest}`,
  getName: ({ reference }) => reference,
  filters: {
    image: { get: ({ reference }) => reference },
    region: { get: ({ region }) => region, values: REGIONS },
    digest: { get: ({ digest }) => digest ?? '' },
  },
  getEmptyMessage: (isFiltered) =>
    isFiltered
      ? 'No matching images.'
      : `No images. \`${boxCommand()} images pull IMAGE\` downloads one, and \`${boxCommand()} create --image IMAGE\` does so too, in a region with images: \`${boxCommand()} regions\`.`,
}

const FREEZE: Record<string, string> = { true: 'yes', false: 'no', null: 'unknown' }

const formatBoolean = (value: boolean): string => (value ? 'yes' : 'no')

export const REGION_LIST: List<RegionInfo> = {
  columns: [
    { header: 'REGION', cell: ({ region }) => region },
    { header: 'PROVIDER', cell: ({ provider }) => provider },
    { header: 'ROOT', cell: ({ root }) => formatBoolean(root) },
    { header: 'FREEZE', cell: ({ freeze }) => FREEZE[String(freeze)] ?? '-' },
    { header: 'RESIZE', cell: ({ resize }) => resize },
    { header: 'SNAPSHOTS', cell: ({ snapshots }) => formatBoolean(snapshots) },
    { header: 'DEFAULT', cell: ({ isDefault }) => (isDefault ? 'yes' : '-') },
    { header: 'DESCRIPTION', cell: ({ description }) => description, isWide: true },
    {
      header: 'IMAGES',
      cell: ({ images, defaultImage }) => (images ? `any, default ${defaultImage ?? 'none'}` : 'none'),
    },
  ],
  getId: ({ region }) => region,
  getName: ({ region }) => region,
  filters: {
    region: { get: ({ region }) => region, values: REGIONS },
    provider: { get: ({ provider }) => provider, values: ['local', 'docker', 'podman', 'incus'] },
    root: { get: ({ root }) => formatBoolean(root), values: ['yes', 'no'] },
    images: { get: ({ images }) => formatBoolean(images), values: ['yes', 'no'] },
  },
  getEmptyMessage: () => 'No matching regions.',
}
