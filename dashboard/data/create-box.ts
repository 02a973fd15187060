// The form that creates a box: its request, and the command that does the same.
import type { CreateBoxRequest } from '../../shared/api/boxes.ts'
import type { Environment } from '../../shared/api/environments.ts'
import type { RegionInfo } from '../../shared/api/images.ts'
import type { Snapshot } from '../../shared/api/snapshots.ts'
import type { Region, Tier } from '../../shared/tiers.ts'
import { formatCommandLine } from './command-line.ts'
import { showHidden } from './visible-text.ts'

type Values = Record<string, string>

export const NO_ENVIRONMENT = '-'

/** Null: no minutes. NaN: not a number. */
const parseMinutes = (text = ''): number | null => (text.trim() === '' ? null : Number(text))

const isMinutes = (text: string | undefined): boolean => {
  const minutes = parseMinutes(text)
  return minutes === null || (Number.isInteger(minutes) && minutes > 0)
}

export const acceptsBox = ({ ttl, autoPause, from, image, region }: Values): boolean =>
  isMinutes(ttl) && isMinutes(autoPause) && (!from || (!image && !region))

export function toCreateRequest(values: Values): CreateBoxRequest {
  const { name, tier, region, image, environment, from, restricted } = values
  const [ttlMinutes, autoPauseMin] = [parseMinutes(values.ttl), parseMinutes(values.autoPause)]
  return {
    ...(name && { name }),
    ...(tier && { tier: tier as Tier }),
    ...(region && { region: region as Region }),
    ...(image && { image }),
    ...(environment && { environment: environment === NO_ENVIRONMENT ? null : environment }),
    ...(from && { fromSnapshotId: from }),
    ...(ttlMinutes !== null && { ttlMinutes }),
    ...(autoPauseMin !== null && { autoPauseMin }),
    ...(restricted && { restricted: true }),
  }
}

const option = (name: string, value: string | undefined) => (value ? [name, value] : [])

export function formatCreateCommand(values: Values): string {
  const { name, tier, region, image, environment, from, ttl, autoPause, restricted } = values
  return formatCommandLine(
    'box',
    'create',
    name,
    ...option('--tier', tier),
    ...option('--region', region),
    ...option('--image', image),
    ...option('--environment', environment === NO_ENVIRONMENT ? 'none' : environment),
    ...option('--from', from),
    ...option('--ttl', ttl?.trim() && `${ttl.trim()}m`),
    ...option('--auto-pause', autoPause?.trim() && `${autoPause.trim()}m`),
    restricted && '--restricted',
  )
}

/** Whether a policy allows the image, as far as its name tells; the coordinator also compares its full form. */
export function matchesImages(image: string, allowed: readonly string[] | null): boolean {
  if (allowed === null || image === '') return true
  return allowed.some((pattern) => {
    const parts = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    return new RegExp(`^${parts.join('.*')}$`).test(image)
  })
}

/** What decides whether a box may be created, as far as the user may read it. */
export type CreationRules = {
  regions: readonly RegionInfo[]
  environments: readonly Environment[]
  /** Null: all. */
  allowedImages: readonly string[] | null
  /** When the closing of the workspace was requested; null: it is open. */
  closingAt: string | null
}

/** Why the request will probably be refused; null: no reason is known. */
export function explainRefusal(
  values: Values,
  snapshots: Iterable<Snapshot>,
  { regions, environments, allowedImages, closingAt }: CreationRules,
): string | null {
  if (closingAt !== null)
    return 'The workspace is closing, and no box can be created. Reopen it on the page Settings.'
  const image = chooseImage(values, [...snapshots], regions, environments)
  if (image === null || matchesImages(image, allowedImages)) return null
  return `The policy allowedImages may refuse the image ${showHidden(image)}. It allows ${showHidden(allowedImages?.join(', ') || 'none')}.`
}

/** The image that the coordinator would choose; null: the box has none. */
function chooseImage(
  values: Values,
  snapshots: readonly Snapshot[],
  regions: readonly RegionInfo[],
  environments: readonly Environment[],
): string | null {
  const { image, from, environment, region } = values
  if (from) return snapshots.find(({ id }) => id === from)?.image ?? null
  if (image) return image
  const chosen = environments.find(({ name, isDefault }) => (environment ? name === environment : isDefault))
  if (chosen !== undefined && chosen.image !== null) return chosen.image
  return regions.find((each) => (region ? each.region === region : each.isDefault))?.defaultImage ?? null
}
