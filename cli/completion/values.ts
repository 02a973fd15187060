// The values of options and arguments: boxes, snapshots, processes and sessions of the coordinator, tiers, regions, time spans, local files.
import type { Argument, Command, Option } from 'commander'
import type { Box } from '../../shared/api/boxes.ts'
import type { Environment } from '../../shared/api/environments.ts'
import type { Member } from '../../shared/api/members.ts'
import type { ExecList } from '../../shared/api/processes.ts'
import type { CurrentSession } from '../../shared/api/sessions.ts'
import { KNOWN_SECRETS } from '../../shared/known-secrets.ts'
import { SECRET_LOCATIONS } from '../../shared/secret-locations.ts'
import { REGIONS, TIER_NAMES } from '../../shared/tiers.ts'
import { getProfilePath, readProfiles } from '../connection/profile-file.ts'
import { LOCAL } from '../connection/select-profile.ts'
import { openSession } from '../connection/session.ts'
import { listTopics } from '../docs/pages.ts'
import { findEnvironment, loadEnvironments } from '../environments/find-environment.ts'
import { loadRoles } from '../federation/roles.ts'
import { loadImages } from '../images/load-images.ts'
import { loadKeys } from '../keys/find-key.ts'
import { loadEnrollments } from '../machines/enrollments.ts'
import { isSuspended } from '../output/box-state.ts'
import { sanitize } from '../output/print.ts'
import { POLICY_NAMES } from '../policies/policy-values.ts'
import { getPage } from '../processes/read-records.ts'
import { loadConversations, loadPrompts } from '../prompts/find-run.ts'
import { toLoadedRuns } from '../prompts/run-list.ts'
import { loadSecrets } from '../secrets/find-secret.ts'
import { loadMounts } from '../secrets/mounts.ts'
import { loadBoxShares } from '../shares/requests.ts'
import { loadSnapshots } from '../snapshots/find-snapshot.ts'
import { listSessions } from '../terminal/create-session.ts'

export type Candidate = { value: string; description: string }
export type Values = { candidates: Candidate[]; includesFiles: boolean }

/** `words` are the arguments before the value; the first one is usually the name of a box. */
type Source = (words: readonly string[]) => Values | Promise<Values>

/** The user waits for the candidates. */
const TIMEOUT_MS = 1_000
/** A shell inserts the value into the command line without quotes. */
const SAFE_VALUE = /^[\w.:@+/-]{1,128}$/
const MAX_DESCRIPTION_LENGTH = 60

const none: Source = () => ({ candidates: [], includesFiles: false })
const files: Source = () => ({ candidates: [], includesFiles: true })
const choices = (values: readonly string[]): Source => {
  const candidates = values.map((value) => ({ value, description: '' }))
  return () => ({ candidates, includesFiles: false })
}

/** The keys are the name of the argument or option, or the names of the command and the argument. */
const SOURCES: Record<string, Source> = {
  name: async (words) => ({ candidates: await listBoxes(words), includesFiles: false }),
  'wake name': async (words) => ({ candidates: await listBoxes(words, isSuspended), includesFiles: false }),
  'stop name': async (words) => ({ candidates: await listBoxes(words, isRunning), includesFiles: false }),
  'suspend name': async (words) => ({ candidates: await listBoxes(words, isRunning), includesFiles: false }),
  label: async () => ({ candidates: await listLabelKeys(), includesFiles: false }),
  'create label': none,
  'run label': none,
  'label name': async (words) => ({ candidates: await listLabelWords(words), includesFiles: false }),
  'create name': none,
  'run name': none,
  'fork name': none,
  'restore name': none,
  'snapshot name': none,
  'template name': none,
  box: async (words) => ({ candidates: await listBoxes(words), includesFiles: false }),
  'fork source': async () => ({ candidates: await listBoxes(), includesFiles: false }),
  'template source': async () => ({
    candidates: [...(await listBoxes()), ...(await listSnapshots())],
    includesFiles: false,
  }),
  snapshot: async (words) => ({ candidates: await listSnapshots(words), includesFiles: false }),
  from: async () => ({ candidates: await listSnapshots(), includesFiles: false }),
  file: files,
  'set ttl': choices(['1h', '4h', '1d', 'off']),
  'set autoPause': choices(['30m', '2h', '8h', 'off']),
  'set deleteAfter': choices(['2h', '1d', '7d', 'off']),
  autoSnapshot: choices(['6h', '24h', 'off']),
  variable: async ([box = '']) => ({ candidates: await listVariables(box), includesFiles: false }),
  unset: async ([box = '']) => ({ candidates: await listVariables(box), includesFiles: false }),
  template: async (words) => ({ candidates: await listTemplates(words), includesFiles: false }),
  id: async ([box = '', ...ids]) => ({ candidates: await listProcesses(box, ids), includesFiles: false }),
  'output id': async ([box = '']) => ({ candidates: await listRecords(box), includesFiles: false }),
  session: async ([box = '']) => ({ candidates: await listTerminals(box), includesFiles: false }),
  'sessions kill': async ([box = '']) => ({ candidates: await listTerminals(box), includesFiles: false }),
  run: async ([box = '', ...runs]) => ({ candidates: await listRuns(box, runs), includesFiles: false }),
  'interrupt run': async ([box = '', ...runs]) => ({
    candidates: await listRuns(box, runs, isUnfinished),
    includesFiles: false,
  }),
  conversation: async ([box = '']) => ({ candidates: await listConversations(box), includesFiles: false }),
  source: listPaths,
  destination: listPaths,
  path: listPaths,
  // Paths on a box.
  ...Object.fromEntries(['ls', 'stat', 'mkdir', 'mv'].map((command) => [`${command} path`, none])),
  tier: choices(TIER_NAMES),
  image: async (words) => ({ candidates: await listImages(words), includesFiles: false }),
  'pull image': none,
  region: choices(REGIONS),
  last: choices(['1h', '6h', '24h', '7d', '30d']),
  dir: files,
  port: async ([box = '']) => ({ candidates: await listListening(box), includesFiles: false }),
  'share expires': choices(['2h', '1d', '7d', '30d']),
  'unshare share': async () => ({ candidates: await listBoxes(), includesFiles: false }),
  'unshare port': async ([box = '']) => ({ candidates: await listShared(box), includesFiles: false }),
  'add name': none,
  token: async (words) => ({ candidates: await listEnrollments(words), includesFiles: false }),
  'rename name': none,
  'close name': none,
  key: async (words) => ({ candidates: await listKeys(words), includesFiles: false }),
  member: async (words) => ({ candidates: await listMembers(words), includesFiles: false }),
  workspace: async () => ({ candidates: await listWorkspaces(), includesFiles: false }),
  policy: choices(POLICY_NAMES),
  csv: files,
  'set in': choices(SECRET_LOCATIONS),
  secret: async (words) => ({ candidates: await listSecrets(words), includesFiles: false }),
  // Of `box aws`.
  'verify role': async (words) => ({ candidates: await listRoles(words), includesFiles: false }),
  'disconnect role': async (words) => ({ candidates: await listRoles(words), includesFiles: false }),
  'connect role-arn': none,
  directory: files,
  'set secret': async () => ({ candidates: await listNewSecrets(), includesFiles: false }),
  'mount secret': async ([, ...words]) => ({ candidates: await listSecrets(words), includesFiles: false }),
  'unmount variable': async ([box = '', ...words]) => ({
    candidates: await listMounted(box, words),
    includesFiles: false,
  }),
  grant: async () => ({ candidates: await listGrantees(), includesFiles: false }),
  grantee: async ([, ...words]) => ({ candidates: await listGrantees(words), includesFiles: false }),
  environment: async (words) => ({ candidates: await listEnvironments(words), includesFiles: false }),
  'set variable': none,
  'unset variable': async ([environment = '', ...words]) => ({
    candidates: await listEnvironmentValues(environment, words, ({ vars }) => vars.map(({ name }) => name)),
    includesFiles: false,
  }),
  'put path': none,
  'rm path': async ([environment = '', ...words]) => ({
    candidates: await listEnvironmentValues(environment, words, ({ files }) =>
      files.map(({ path }) => path.replace(/^~\//, '')),
    ),
    includesFiles: false,
  }),
  'rm repo': async ([environment = '', ...words]) => ({
    candidates: await listEnvironmentValues(environment, words, ({ repos }) => repos.map(({ repo }) => repo)),
    includesFiles: false,
  }),
  profile: () => choices(listProfileNames())([]),
  topic: () => choices(listTopics())([]),
}

/** Returns no values when no coordinator responds in time. */
export async function listValues(
  command: Command,
  target: Argument | Option,
  words: readonly string[],
): Promise<Values> {
  const isOption = 'attributeName' in target
  const name = isOption ? target.attributeName() : target.name().replace(/s$/, '')
  // --name is a new name.
  if (isOption && name === 'name') return { candidates: [], includesFiles: false }
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

/** Lists keys by their ids: names are not unique. */
const listKeys = (exclude: readonly string[]): Promise<Candidate[]> =>
  fetchUnlessFails(async (client) => {
    const keys = await loadKeys(client)
    return keys
      .filter(({ id }) => !exclude.includes(id))
      .map(({ id, name }) => ({ value: id, description: describe(name) }))
  })

const listEnrollments = (exclude: readonly string[]): Promise<Candidate[]> =>
  fetchUnlessFails(async (client) =>
    (await loadEnrollments(client))
      .filter(({ id }) => !exclude.includes(id))
      .map(({ id, name }) => ({ value: id, description: describe(name ?? '') })),
  )

/** Lists members by their email addresses; the first owner may have none. */
const listMembers = (exclude: readonly string[]): Promise<Candidate[]> =>
  fetchUnlessFails(async (client) => {
    const { members } = await client.requestBySession<{ members: Member[] }>('GET', '/members')
    return members
      .map(({ id, email, name, role }) => ({ value: email ?? id, description: describe(`${name}, ${role}`) }))
      .filter(({ value }) => !exclude.includes(value))
  })

/** Lists workspaces by their ids: names are not unique. */
const listWorkspaces = (): Promise<Candidate[]> =>
  fetchUnlessFails(async (client) => {
    const { workspaces } = await client.requestBySession<CurrentSession>('GET', '/session')
    return workspaces.map(({ id, name }) => ({ value: id, description: describe(name) }))
  })

function listProfileNames(): string[] {
  try {
    const { profiles } = readProfiles(getProfilePath(process.env))
    return [...new Set([LOCAL, ...profiles.map(({ name }) => name)])]
  } catch {
    return []
  }
}

type Client = ReturnType<typeof openSession>['client']

const isRunning = (state: Box['observedState']): boolean => state === 'running'

/** Omits the boxes in `exclude`. */
const listBoxes = (
  exclude: readonly string[] = [],
  isIncluded: (state: Box['observedState']) => boolean = () => true,
): Promise<Candidate[]> =>
  fetchUnlessFails(async (client) => {
    const { boxes } = await client.request<{ boxes: Box[] }>('GET', '/boxes?live=1')
    return boxes
      .filter(({ hostname, observedState }) => !exclude.includes(hostname) && isIncluded(observedState))
      .map(({ hostname, observedState }) => ({ value: hostname, description: describe(observedState) }))
  })

/** The keys of all boxes, without values: a shell splits words at `=`. */
const listLabelKeys = (): Promise<Candidate[]> =>
  fetchUnlessFails(async (client) => {
    const { boxes } = await client.request<{ boxes: Box[] }>('GET', '/boxes?live=1')
    const keys = new Set(boxes.flatMap(({ labels }) => Object.keys(labels ?? {})))
    return [...keys].sort().map((value) => ({ value, description: '' }))
  })

/** Boxes, and after the first one the labels that can be removed. */
async function listLabelWords(words: readonly string[]): Promise<Candidate[]> {
  const keys = words.length === 0 ? [] : await listLabelKeys()
  const removals = keys.map(({ value }) => ({ value: `${value}-`, description: 'remove the label' }))
  return [...(await listBoxes(words)), ...removals.filter(({ value }) => !words.includes(value))]
}

/** Lists only the names: the values are often secrets. */
const listVariables = (box: string): Promise<Candidate[]> =>
  fetchUnlessFails(async (client) => {
    const { envVars } = await client.findBox(box)
    return envVars.map(({ name }) => ({ value: name, description: '' }))
  })

const listTemplates = (exclude: readonly string[] = []): Promise<Candidate[]> =>
  fetchUnlessFails(async (client) => {
    const { snapshots } = await loadSnapshots(client)
    return snapshots.flatMap(({ templateName, sourceBoxHostname }) =>
      templateName === null || exclude.includes(templateName)
        ? []
        : [{ value: templateName, description: describe(`template of ${sourceBoxHostname}`) }],
    )
  })

/** Templates by their names, then snapshots by their names; snapshots with the same name by their ids. */
const listSnapshots = (exclude: readonly string[] = []): Promise<Candidate[]> =>
  fetchUnlessFails(async (client) => {
    const { snapshots } = await loadSnapshots(client)
    const names = snapshots.flatMap(({ name, templateName }) => templateName ?? name)
    return snapshots
      .map(({ id, name, templateName, status, sourceBoxHostname }) => {
        const typed = templateName ?? name
        const kind = templateName === null ? 'snapshot' : 'template'
        return {
          value: names.filter((other) => other === typed).length > 1 ? id : typed,
          description: describe(`${kind} of ${sourceBoxHostname}, ${status}`),
        }
      })
      .filter(({ value }) => !exclude.includes(value))
  })

/** Local files, and boxes as `fig:`. */
async function listPaths(): Promise<Values> {
  const boxes = await listBoxes()
  return { candidates: boxes.map((box) => ({ ...box, value: `${box.value}:` })), includesFiles: true }
}

const listSecrets = (exclude: readonly string[] = []): Promise<Candidate[]> =>
  fetchUnlessFails(async (client) =>
    (await loadSecrets(client))
      .filter(({ name }) => !exclude.includes(name))
      .map(({ name, hosts }) => ({ value: name, description: describe(hosts.join(', ')) })),
  )

const listRoles = (exclude: readonly string[]): Promise<Candidate[]> =>
  fetchUnlessFails(async (client) =>
    (await loadRoles(client)).roles
      .filter(({ profile }) => !exclude.includes(profile))
      .map(({ profile, roleArn }) => ({ value: profile, description: describe(roleArn) })),
  )

/** The secrets that exist, and the well-known names. */
async function listNewSecrets(): Promise<Candidate[]> {
  const existing = await listSecrets()
  const names = existing.map(({ value }) => value)
  const known = Object.entries(KNOWN_SECRETS).filter(([name]) => !names.includes(name))
  return [...existing, ...known.map(([value, { description }]) => ({ value, description }))]
}

const listMounted = (box: string, exclude: readonly string[]): Promise<Candidate[]> =>
  fetchUnlessFails(async (client) =>
    (await loadMounts(client, (await client.findBox(box)).id)).mounts
      .filter(({ envName }) => !exclude.includes(envName))
      .map(({ envName, secret }) => ({ value: envName, description: describe(secret.name) })),
  )

const listGrantees = async (exclude: readonly string[] = []): Promise<Candidate[]> =>
  (await Promise.all([listBoxes(exclude), listMembers(exclude)])).flat()

const listEnvironments = (exclude: readonly string[]): Promise<Candidate[]> =>
  fetchUnlessFails(async (client) =>
    (await loadEnvironments(client))
      .filter(({ name }) => !exclude.includes(name))
      .map(({ name, latestVersionNo }) => ({ value: name, description: `version ${latestVersionNo}` })),
  )

const listEnvironmentValues = (
  environment: string,
  exclude: readonly string[],
  getValues: (environment: Environment) => string[],
): Promise<Candidate[]> =>
  fetchUnlessFails(async (client) =>
    getValues(findEnvironment(await loadEnvironments(client), environment))
      .filter((value) => !exclude.includes(value))
      .map((value) => ({ value, description: '' })),
  )

const listProcesses = (box: string, exclude: readonly string[]): Promise<Candidate[]> =>
  fetchUnlessFails(async (client) => {
    const { processes } = await (await client.createEdgeClient(box)).requestJson<ExecList>('GET', '/exec')
    return processes
      .filter(({ processId }) => !exclude.includes(processId))
      .map(({ processId, command }) => ({ value: processId, description: describe(command) }))
  })

const isUnfinished = (status: string): boolean => status === 'running' || status === 'queued'

const listRuns = (
  box: string,
  exclude: readonly string[],
  isIncluded: (status: string) => boolean = () => true,
): Promise<Candidate[]> =>
  fetchUnlessFails(async (client) => {
    const { rows } = toLoadedRuns(await loadPrompts(await client.createEdgeClient(box)))
    return rows
      .filter(({ id, status }) => !exclude.includes(id) && isIncluded(status))
      .map(({ id, status, prompt }) => ({ value: id, description: describe(`${status}: ${prompt}`) }))
  })

const listConversations = (box: string): Promise<Candidate[]> =>
  fetchUnlessFails(async (client) => {
    const { conversations } = await loadConversations(await client.createEdgeClient(box))
    return conversations.map(({ id, provider, lastPrompt }) => ({
      value: id,
      description: describe(`${provider}: ${lastPrompt}`),
    }))
  })

const listRecords = (box: string): Promise<Candidate[]> =>
  fetchUnlessFails(async (client) => {
    const { id } = await client.findBox(box)
    const { commands } = await getPage(client, id, {})
    return commands.map(({ id: value, command }) => ({ value, description: describe(command ?? '') }))
  })

const listImages = (excluded: readonly string[] = []): Promise<Candidate[]> =>
  fetchUnlessFails(async (client) => {
    const { images } = await loadImages(client)
    const names = new Map(images.map(({ reference, region }) => [reference, region]))
    return [...names]
      .filter(([name]) => !excluded.includes(name))
      .map(([value, region]) => ({ value, description: region }))
  })

const listTerminals = (box: string): Promise<Candidate[]> =>
  fetchUnlessFails(async (client) => {
    const { sessions } = await listSessions(await client.createEdgeClient(box))
    return sessions.map(({ session, command }) => ({
      value: session,
      description: describe(command ?? 'login shell'),
    }))
  })

const listListening = (box: string): Promise<Candidate[]> =>
  fetchUnlessFails(async (client) => {
    const { listening } = await loadBoxShares(client, (await client.findBox(box)).id)
    const ports = new Map((listening?.ports ?? []).map(({ port, process }) => [port, process]))
    return [...ports].map(([port, process]) => ({
      value: String(port),
      description: describe(process ?? ''),
    }))
  })

const listShared = (box: string): Promise<Candidate[]> =>
  fetchUnlessFails(async (client) => {
    const { shares } = await loadBoxShares(client, (await client.findBox(box)).id)
    return shares.map(({ port, access }) => ({ value: String(port), description: describe(access) }))
  })

const describe = (text: string): string => sanitize(text.slice(0, MAX_DESCRIPTION_LENGTH))
