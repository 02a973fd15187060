// The form that creates a box: its request, and the command that does the same.
import type { CreateBoxRequest } from '../../shared/api/boxes.ts'
import type { Environment } from '../../shared/api/environments.ts'
import type { RegionInfo } from '../../shared/api/images.ts'
import type { Snapshot } from '../../shared/api/snapshots.ts'
import type { Region, Tier } from '../../shared/tiers.ts'
import type { AdmissionRequest } from './admission.ts'
import { formatCommandLine } from './command-line.ts'

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

/** What the request asks for, with what the coordinator would choose. */
export function toAdmission(
  values: Values,
  snapshots: Iterable<Snapshot>,
  choices: { regions: readonly RegionInfo[]; environments: readonly Environment[] },
): AdmissionRequest {
  const source = [...snapshots].find(({ id }) => id === values.from)
  const image = source === undefined ? chooseImage(values, choices) : source.image
  const tier = (values.tier as Tier | '' | undefined) || source?.tier || null
  return source === undefined
    ? { tier, image }
    : { tier, image, region: source.region, sizeGb: source.sizeGb }
}

/** The image of a box that starts empty; null: it has none. */
function chooseImage(
  { image, environment, region }: Values,
  { regions, environments }: { regions: readonly RegionInfo[]; environments: readonly Environment[] },
): string | null {
  if (image) return image
  const chosen = environments.find(({ name, isDefault }) => (environment ? name === environment : isDefault))
  if (chosen !== undefined && chosen.image !== null) return chosen.image
  return regions.find((each) => (region ? each.region === region : each.isDefault))?.defaultImage ?? null
}
