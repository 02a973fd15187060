// The values of options and arguments: boxes, processes and sessions of the coordinator, tiers, regions, local files.
import type { Argument, Command, Option } from 'commander'
import type { Box } from '../../shared/api/boxes.ts'
import type { ExecList } from '../../shared/api/processes.ts'
import { REGIONS, TIER_NAMES } from '../../shared/tiers.ts'
import { listTopics } from '../docs/pages.ts'
import { getPage } from '../history/read-records.ts'
import { sanitize } from '../output.ts'
import { openSession } from '../session.ts'
import { listSessions } from '../terminal/create-session.ts'

export type Candidate = { value: string; description: string }
export type Values = { candidates: Candidate[]; includesFiles: boolean }

/** `words` are the arguments before the value; the first one is usually the name of a box. */
type Source = (words: readonly string[]) => Values | Promise<Values>

/** The user waits for the candidates. */
const TIMEOUT_MS = 1_000
/** A shell inserts the value into the command line without quotes. */
const SAFE_VALUE = /^[\w.:-]{1,128}$/
const MAX_DESCRIPTION_LENGTH = 60

const none: Source = () => ({ candidates: [], includesFiles: false })
const files: Source = () => ({ candidates: [], includesFiles: true })
const choices = (values: readonly string[]): Source => {
  const candidates = values.map((value) => ({ value, description: '' }))
  return () => ({ candidates, includesFiles: false })
}

/** By the name of the argument or option, or by the names of the command and the argument. */
const SOURCES: Record<string, Source> = {
  name: async (words) => ({ candidates: await listBoxes(words), includesFiles: false }),
  'wake name': async (words) => ({ candidates: await listBoxes(words, 'suspended'), includesFiles: false }),
  'suspend name': async (words) => ({ candidates: await listBoxes(words, 'running'), includesFiles: false }),
  'create name': none,
  'run name': none,
  id: async ([box = '', ...ids]) => ({ candidates: await listProcesses(box, ids), includesFiles: false }),
  'output id': async ([box = '']) => ({ candidates: await listRecords(box), includesFiles: false }),
  session: async ([box = '']) => ({ candidates: await listTerminals(box), includesFiles: false }),
  'sessions kill': async ([box = '']) => ({ candidates: await listTerminals(box), includesFiles: false }),
  source: listPaths,
  destination: listPaths,
  path: listPaths,
  tier: choices(TIER_NAMES),
  region: choices(REGIONS),
  dir: files,
  topic: () => choices(listTopics())([]),
}

/** Returns no values when no coordinator responds in time. */
export async function listValues(
  command: Command,
  target: Argument | Option,
  words: readonly string[],
): Promise<Values> {
  const name = 'attributeName' in target ? target.attributeName() : target.name().replace(/s$/, '')
  const source =
    target.argChoices !== undefined
      ? choices(target.argChoices)
      : (SOURCES[`${command.name()} ${name}`] ?? SOURCES[name] ?? none)
  const { candidates, includesFiles } = await source(words)
  return { candidates: candidates.filter(({ value }) => SAFE_VALUE.test(value)), includesFiles }
}

async function fetchUnlessFails<T>(fetch: (client: Client) => Promise<T[]>): Promise<T[]> {
  try {
    return await fetch(openSession(AbortSignal.timeout(TIMEOUT_MS)).client)
  } catch {
    return []
  }
}

type Client = ReturnType<typeof openSession>['client']

/** Without the boxes in `exclude`; with `state`, only boxes in this state. */
const listBoxes = (exclude: readonly string[] = [], state?: string): Promise<Candidate[]> =>
  fetchUnlessFails(async (client) => {
    const { boxes } = await client.request<{ boxes: Box[] }>('GET', '/boxes?live=1')
    return boxes
      .filter(
        ({ hostname, observedState }) =>
          !exclude.includes(hostname) && (state ?? observedState) === observedState,
      )
      .map(({ hostname, observedState }) => ({ value: hostname, description: describe(observedState) }))
  })

/** Local files, and boxes as `fig:`. */
async function listPaths(): Promise<Values> {
  const boxes = await listBoxes()
  return { candidates: boxes.map((box) => ({ ...box, value: `${box.value}:` })), includesFiles: true }
}

const listProcesses = (box: string, exclude: readonly string[]): Promise<Candidate[]> =>
  fetchUnlessFails(async (client) => {
    const { processes } = await (await client.createEdgeClient(box)).requestJson<ExecList>('GET', '/exec')
    return processes
      .filter(({ processId }) => !exclude.includes(processId))
      .map(({ processId, command }) => ({ value: processId, description: describe(command) }))
  })

const listRecords = (box: string): Promise<Candidate[]> =>
  fetchUnlessFails(async (client) => {
    const { id } = await client.findBox(box)
    const { commands } = await getPage(client, id, {})
    return commands.map(({ id: value, command }) => ({ value, description: describe(command ?? '') }))
  })

const listTerminals = (box: string): Promise<Candidate[]> =>
  fetchUnlessFails(async (client) => {
    const { sessions } = await listSessions(await client.createEdgeClient(box))
    return sessions.map(({ session, command }) => ({
      value: session,
      description: describe(command ?? 'login shell'),
    }))
  })

const describe = (text: string): string => sanitize(text.slice(0, MAX_DESCRIPTION_LENGTH))
