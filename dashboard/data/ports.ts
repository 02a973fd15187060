// The listening ports of a box with their links, and who a new link may be for.
import type { PortAudience, PortShare, PortShares } from '../../shared/api/port-shares.ts'
import { formatCommandLine } from './command-line.ts'

/** `process` and `pid`: null where they are unknown. A port with a link may have no listening process. */
export type PortRow = {
  port: number
  isListening: boolean
  process: string | null
  pid: number | null
  share: PortShare | null
}

/** By port, ascending. Several processes may listen on one port, on different addresses. */
export function listPortRows({ listening, shares }: Pick<PortShares, 'listening' | 'shares'>): PortRow[] {
  const byPort = new Map(shares.map((share) => [share.port, share]))
  const rows: PortRow[] = (listening?.ports ?? []).map(({ port, process, pid }) => ({
    port,
    process,
    pid,
    isListening: true,
    share: byPort.get(port) ?? null,
  }))
  const known = new Set(rows.map(({ port }) => port))
  for (const share of shares)
    if (!known.has(share.port))
      rows.push({ port: share.port, process: null, pid: null, isListening: false, share })
  return rows.sort((a, b) => a.port - b.port)
}

export const AUDIENCES: Record<PortAudience, string> = {
  members: 'Members of the workspace who see the box',
  anyone: 'Anyone who has the link, which has a secret',
  public: 'Everyone',
}

/** The audiences that a new link may have, and the reasons why it may not have the others. */
export function listAudiences(modes: PortShares['modes']): { allowed: PortAudience[]; refusals: string[] } {
  const all = Object.keys(AUDIENCES) as PortAudience[]
  return {
    allowed: all.filter((audience) => modes[audience].allowed),
    refusals: all.flatMap((audience) => {
      const mode = modes[audience]
      return mode.allowed ? [] : [`${AUDIENCES[audience]}: ${mode.message}`]
    }),
  }
}

/** Seconds, by their label. */
export const LIFETIMES = {
  '1 hour': 3_600,
  '1 day': 86_400,
  '7 days': 604_800,
  '30 days': 2_592_000,
} as const

/** A port that can be shared; null: the text is none. */
export function parsePort(text: string): number | null {
  const port = /^\d{1,5}$/.test(text.trim()) ? Number(text) : 0
  return port >= 1 && port <= 65_535 ? port : null
}

/** The command that creates the same link. @param access undefined: the link that the port already has, or one for members */
export const formatShareCommand = (name: string, port: string, access: string, lifetime: string): string =>
  formatCommandLine(
    ...['box', 'share', name, port],
    access !== 'members' && access !== '' && `--${access}`,
    ...(access !== 'members' && access !== '' && lifetime !== ''
      ? ['--expires', `${Number(lifetime) / 3_600}h`]
      : []),
  )

/** Only such a link is followed; another text is shown. */
export const isWebUrl = (text: string): boolean => /^https?:\/\//.test(text)
