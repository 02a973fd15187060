// Text for operators: which engines were found, what their boxes can do, and the line that adds one.
import type { EngineDiagnosis } from '../../shared/coordinator-process.ts'
import { DEFAULT_REGION, REGIONS, type Region } from '../../shared/tiers.ts'
import type { EngineProviderKind, EngineReport } from './probe-engines.ts'
import { formatProvider, type RegionProvider } from './settings.ts'

export const ENGINE_NAMES: Readonly<Record<EngineProviderKind, string>> = {
  docker: 'Docker',
  podman: 'Podman',
  incus: 'Incus',
}

/** Different ones, so that the lines of several engines can be combined. */
const PREFERRED_REGIONS: Readonly<Record<EngineProviderKind, Region>> = {
  docker: 'us-east-1',
  podman: 'us-east-2',
  incus: 'eu-central-1',
}

export type DescribeOptions = {
  regions: ReadonlyMap<Region, RegionProvider>
  /** The regions that have local boxes or archives: they cannot get another provider. */
  occupiedRegions: readonly Region[]
  /** The command that starts the coordinator, such as `npm start`. */
  startCommand: string
}

export function describeEngine(report: EngineReport, options: DescribeOptions): EngineDiagnosis {
  const { kind, address } = report
  const regions = [...options.regions].flatMap(([region, provider]) =>
    provider.kind === kind ? [region] : [],
  )
  if (report.status !== 'running') {
    const found = address === '' ? report.problem : `${report.problem} (${address})`
    return {
      kind,
      status: regions.length > 0 ? 'warn' : 'ok',
      message: `${ENGINE_NAMES[kind]}: ${found}`,
      advice: adviseRepair(report, regions, formatStartLine(kind, options)),
      startLine: null,
    }
  }
  const message = `${ENGINE_NAMES[kind]} ${report.version} (${report.facts.join(', ')}): ${describeAbilities(report)}`
  if (regions.length > 0)
    return { kind, status: 'ok', message: `${message}; ${regions.join(', ')}`, advice: null, startLine: null }
  const startLine = formatStartLine(kind, options)
  return {
    kind,
    status: 'ok',
    message,
    advice:
      startLine === null
        ? 'An engine needs a region without local boxes and snapshots: move or delete those of one.'
        : `To add it, stop Boxwood and start it with: ${startLine}`,
    startLine,
  }
}

const describeAbilities = ({ canFreeze, canResizeLive }: Extract<EngineReport, { status: 'running' }>) =>
  [
    'boxes with root and images',
    canFreeze ? 'freeze' : 'no freeze: a suspend terminates the processes',
    canResizeLive ? 'live resize' : 'a resize restarts the box',
  ].join(', ')

/** @param startLine adds an engine that no region has */
function adviseRepair(
  { kind, status, address }: EngineReport,
  regions: readonly Region[],
  startLine: string | null,
): string {
  const socket = address.replace(/^unix:\/\//, '')
  if (status === 'denied')
    return kind === 'incus'
      ? 'Add the user to the group incus-admin, or trust the certificate of the coordinator with `incus config trust add-certificate`.'
      : `Let this user connect to ${socket}; who may use a rootful engine has root on this machine.`
  if (status === 'missing' && kind === 'podman') {
    const isSystem = socket.startsWith('/run/podman') && process.getuid?.() === 0
    const start = `Start its socket with \`systemctl ${isSystem ? '' : '--user '}enable --now podman.socket\``
    return regions.length > 0 || startLine === null
      ? `${start}.`
      : `${start}, then stop Boxwood and start it with: ${startLine}`
  }
  return regions.length > 0
    ? `Boxes in ${regions.join(', ')} cannot be used until it answers. Start it, or check its address.`
    : 'Start it, or check its address.'
}

/**
 * Keeps the configured regions and the default region. Returns null when no region is free.
 */
export function formatStartLine(
  kind: EngineProviderKind,
  { regions, occupiedRegions, startCommand }: DescribeOptions,
): string | null {
  const defaultRegion = regions.has(DEFAULT_REGION) ? DEFAULT_REGION : regions.keys().next().value
  // DEFAULT_REGION becomes the default as soon as it is configured.
  const isFree = (region: Region) =>
    region !== defaultRegion && region !== DEFAULT_REGION && !occupiedRegions.includes(region)
  const free = [
    ...REGIONS.filter((region) => !regions.has(region) && isFree(region)),
    ...REGIONS.filter((region) => regions.get(region)?.kind === 'local' && isFree(region)),
  ]
  const region = free.includes(PREFERRED_REGIONS[kind]) ? PREFERRED_REGIONS[kind] : free[0]
  if (region === undefined) return null
  // Without a configuration all regions are local, of which those without boxes need no mention.
  const isUnconfigured = REGIONS.every((known) => regions.get(known)?.kind === 'local')
  const kept = [...regions].filter(
    ([name]) =>
      name !== region && (!isUnconfigured || name === defaultRegion || occupiedRegions.includes(name)),
  )
  const entries = [
    ...kept.map(([name, provider]) => `${name}=${formatProvider(provider)}`),
    `${region}=${kind}`,
  ]
  return `BOXWOOD_REGIONS=${entries.join(',')} ${startCommand}`
}

/** Returns the text for a start message: the engines that could be added, and configured ones that cannot be used. */
export function formatEngines(reports: readonly EngineReport[], options: DescribeOptions): string {
  const lines = reports
    .map((report) => describeEngine(report, options))
    .flatMap(({ status, message, advice, startLine }) => {
      if (status === 'warn') return [`${message}. ${advice}`]
      return startLine === null
        ? []
        : [`Found ${message}. To add it, stop Boxwood and start it with:`, `  ${startLine}`]
    })
  return lines.join('\n')
}
