// The pure parts of the pages of the workspace: what a role may open, commands, keys, policies, snapshots, machines and the audit log.
import { createHash, webcrypto } from 'node:crypto'
import t from 'tap'
import {
  listWorkspacePages,
  mayEnrollMachines,
  type PageUser,
  type Role,
} from '../../../dashboard/data/access.ts'
import {
  formatAuditCommand,
  formatCsvPath,
  formatDay,
  getNamesOfEvents,
  groupByDay,
  groupKinds,
  listDetails,
  NO_FILTER,
  toPageQuery,
} from '../../../dashboard/data/audit.ts'
import { createSha256, verifyChain } from '../../../dashboard/data/audit-chain.ts'
import { describeActor, describeEvent, describeKind, KINDS } from '../../../dashboard/data/audit-sentences.ts'
import { REASONING_EFFORTS as EFFORTS } from '../../../dashboard/data/coding-agents.ts'
import { formatCommandLine } from '../../../dashboard/data/command-line.ts'
import {
  acceptsEnvironment,
  formatChangeCommand,
  formatCreateCommand,
  TOGGLE_NAMES,
  toFormValues as toEnvironmentValues,
  toPatchRequest,
} from '../../../dashboard/data/environments.ts'
import { createImagePulls, type ImagePull, summarizeLayers } from '../../../dashboard/data/image-pulls.ts'
import {
  AREA_LEVELS,
  AREA_WORDS,
  acceptsKey,
  listLimits,
  listLimitWords,
  parseAccess,
} from '../../../dashboard/data/keys.ts'
import { findJoined } from '../../../dashboard/data/machines.ts'
import { findPaletteItems, listPaletteItems } from '../../../dashboard/data/palette.ts'
import {
  describePolicy,
  formatPolicyValue,
  POLICIES,
  POLICY_GROUPS,
  parsePolicyForm,
  toFormValues,
  WEEKDAYS,
} from '../../../dashboard/data/policies.ts'
import { parseRoute } from '../../../dashboard/data/routes.ts'
import { findSnapshotError, listSnapshotActions, selectSnapshots } from '../../../dashboard/data/snapshots.ts'
import { TIERS } from '../../../dashboard/data/tiers.ts'
import type { AuditChainEvent } from '../../../shared/api/audit.ts'
import type { Box } from '../../../shared/api/boxes.ts'
import { type Environment, NO_TOGGLES } from '../../../shared/api/environments.ts'
import type { ApiKey } from '../../../shared/api/keys.ts'
import type { Operation } from '../../../shared/api/operations.ts'
import { DEFAULT_POLICY, POLICY_NAMES, type Policy, type PolicyName } from '../../../shared/api/policies.ts'
import type { Snapshot } from '../../../shared/api/snapshots.ts'
import { START_HASH, sealAuditEvent } from '../../../shared/audit-chain.ts'
import { AUDIT_KINDS } from '../../../shared/audit-kinds.ts'
import { ACCESS_LEVELS, WEEKDAYS as ALL_WEEKDAYS, REASONING_EFFORTS } from '../../../shared/field-values.ts'
import { TIER_NAMES, TIERS as TIER_SIZES } from '../../../shared/tiers.ts'

t.test('the values that are copies of shared ones are complete', async (t) => {
  t.same(AREA_LEVELS, ACCESS_LEVELS)
  t.same(WEEKDAYS, ALL_WEEKDAYS)
  t.same(Object.keys(POLICIES).sort(), [...POLICY_NAMES].sort())
  t.same(Object.values(POLICY_GROUPS).flat().sort(), [...POLICY_NAMES].sort())
  t.same(
    Object.fromEntries(Object.entries(POLICIES).map(([name, { initial }]) => [name, initial])),
    DEFAULT_POLICY,
  )
  t.same(Object.keys(TIERS), TIER_NAMES)
  t.same(TOGGLE_NAMES, Object.keys(NO_TOGGLES))
  t.same(EFFORTS, REASONING_EFFORTS)
  for (const tier of TIER_NAMES) {
    const { cpus, memoryBytes, diskGb } = TIER_SIZES[tier]
    t.same(TIERS[tier], { cpus, memoryGiB: memoryBytes / 1024 ** 3, diskGb })
  }
})

t.test('pages by role', async (t) => {
  t.same(parseRoute('workspace/audit'), { page: 'workspace', name: 'audit' })
  for (const path of ['workspace', 'workspace/other', 'workspace/keys/other', 'workspace/toString'])
    t.same(parseRoute(path), { page: 'unknown' }, path)
  const list = (role: Role, billing: PageUser['billing'] = 'off') =>
    listWorkspacePages({ user: { role }, billing }).map(([page]) => page)
  t.same(list('contractor'), ['prompts', 'snapshots', 'keys', 'sessions', 'settings'])
  t.same(list('member'), list('owner'))
  t.equal(list('owner').length, 13)
  t.same(
    (['owner', 'member', 'contractor'] as const).map((role) => list(role, 'manual').includes('billing')),
    [true, false, false],
    'owners have the billing when there is one',
  )
  t.same(
    (['owner', 'member', 'contractor'] as const).map((role) => [
      mayEnrollMachines(role, 'member'),
      mayEnrollMachines(role, 'owner'),
    ]),
    [
      [true, true],
      [true, false],
      [false, false],
    ],
  )
})

t.test('a command is quoted for a shell', async (t) => {
  t.equal(formatCommandLine('box', 'rm', '', undefined, false, 'fig'), 'box rm fig')
  t.equal(formatCommandLine('box', 'keys', 'rm', "it's; rm -rf"), `box keys rm 'it'\\''s; rm -rf'`)
  t.equal(
    formatCommandLine('box', 'policies', 'set', 'allowedImages', 'debian:*'),
    "box policies set allowedImages 'debian:*'",
  )
})

t.test('limits of keys', async (t) => {
  t.equal(parseAccess({ actions: 'all', boxes: 'run', workspace: 'none', history: 'none' }), null)
  const access = parseAccess({ actions: 'limited', boxes: 'run', workspace: 'none', history: 'read' })
  t.same(access, { boxes: 'run', history: 'read' })
  t.ok(acceptsKey({ name: 'ci', actions: 'all' }))
  t.ok(acceptsKey({ name: 'ci', actions: 'limited', history: 'read' }))
  t.notOk(acceptsKey({ name: 'ci', actions: 'limited', boxes: 'none' }), 'such a key could do nothing')
  t.notOk(acceptsKey({ name: '', actions: 'all' }))
  for (const [area, levels] of Object.entries(AREA_LEVELS))
    t.same(
      Object.keys(AREA_WORDS[area as keyof typeof AREA_WORDS].levels),
      levels.filter((level) => level !== 'none'),
      'each level has words',
    )
  const list = (key: Partial<ApiKey>) =>
    listLimits({ userId: 'usr_1', access: null, boxIds: null, ...key }, 'usr_1', (id) => `box-${id}`)
  t.same(list({}), ['everything that your role allows'])
  t.same(list({ userId: 'usr_2' }), ['everything that their role allows'])
  t.same(list({ userId: null }), ['everything that a member may do'])
  t.same(list({ access, boxIds: ['1'] }), [
    'runs commands on boxes',
    'reads the command history',
    'only box-1',
  ])
  t.same(list({ boxIds: ['1', '2', '3', '4', '5'] }), [
    'all actions',
    'only box-1',
    'only box-2',
    'only box-3',
    'only box-4',
    'and 1 more box',
  ])
  t.same(listLimitWords(access, ['fig'], false), ['--access', 'boxes=run,history=read', '--box', 'fig'])
  t.same(listLimitWords(null, [], false), [])
  t.same(listLimitWords(null, [], true), ['--access', 'all', '--all-boxes'])
})

t.test('policies', async (t) => {
  t.same(
    POLICY_NAMES.map((name) => formatPolicyValue(DEFAULT_POLICY[name])),
    ['off', 'off', 'off', 'off', 'off', '90', 'off', 'member', 'off', 'on'],
  )
  const quietHours = parsePolicyForm('quietHours', {
    days: 'mon\ntue',
    allDayDays: 'sun',
    start: '22:00',
    end: '07:00',
    timezone: 'Europe/Berlin',
  })
  t.equal(formatPolicyValue(quietHours as never), 'mon,tue 22:00-07:00 sun all-day Europe/Berlin')
  t.same(
    parsePolicyForm('quietHours', toFormValues(quietHours as never)),
    quietHours,
    'the form keeps the value',
  )
  t.equal(parsePolicyForm('quietHours', { days: '', allDayDays: '', timezone: 'UTC' }), null)
  t.same(parsePolicyForm('allowedImages', { value: ' debian:* \n\nalpine' }), ['debian:*', 'alpine'])
  t.equal(formatPolicyValue(['debian:*', 'alpine']), 'debian:*,alpine')
  const describe = (values: Partial<Policy>) =>
    describePolicy(Object.keys(values)[0] as PolicyName, { ...DEFAULT_POLICY, ...values })
  t.equal(
    describe({ quietHours: quietHours as never }),
    'Mon, Tue from 22:00 to 07:00; Sun all day; Europe/Berlin',
  )
  t.equal(
    describe({ quietHours: { ...(quietHours as QuietHours), days: ['mon', 'tue', 'wed'], allDayDays: [] } }),
    'Mon–Wed from 22:00 to 07:00; Europe/Berlin',
  )
  t.equal(describe({ memberBoxLimit: 1 }), '1 box')
  t.equal(describe({ memberBoxLimit: null }), 'No limit')
  t.equal(describe({ memberSpendCapUsd: 12.5 }), '$12.50 a month')
  t.equal(describe({ memberMaxTier: 'lite' }), 'lite: 2 CPUs, 4 GiB')
  t.equal(describe({ machineEnrollment: 'owner' }), 'Owners only')
  t.equal(parsePolicyForm('memberBoxLimit', { value: 'many' }), null)
  t.equal(parsePolicyForm('memberBoxLimit', { value: '3' }), 3)
  t.equal(parsePolicyForm('shareLinks', { value: 'off' }), false)
  t.equal(parsePolicyForm('memberMaxTier', { value: 'nano' }), 'nano')
  t.equal(parsePolicyForm('machineEnrollment', { value: 'owner' }), 'owner')
})

type QuietHours = NonNullable<Policy['quietHours']>

const createSnapshot = (id: string, fields: Partial<Snapshot>) =>
  ({
    id,
    name: id,
    status: 'available',
    templateName: null,
    error: null,
    sourceBoxHostname: 'fig',
    ...fields,
  }) as Snapshot

t.test('snapshots', async (t) => {
  const snapshots = new Map(
    [
      createSnapshot('a', { createdAt: '2026-01-01T00:00:00.000Z' }),
      createSnapshot('b', { createdAt: '2026-01-02T00:00:00.000Z', templateName: 'web', kind: 'template' }),
    ].map((snapshot) => [snapshot.id, snapshot]),
  )
  const select = (filter: string) => selectSnapshots(snapshots, filter).map(({ id }) => id)
  t.same(select(''), ['b', 'a'])
  t.same(select('FIG web'), ['b'])
  t.same(listSnapshotActions(createSnapshot('a', {})), ['restore', 'template', 'delete'])
  t.same(listSnapshotActions(createSnapshot('a', { templateName: 'web' })), [
    'restore',
    'untemplate',
    'delete',
  ])
  t.same(listSnapshotActions(createSnapshot('a', { status: 'creating' })), [])
  t.same(listSnapshotActions(createSnapshot('a', { status: 'failed' })), ['delete'])
  const operation = { targetId: 'a', kind: 'snapshot_delete', status: 'failed', error: 'disk' } as Operation
  t.equal(findSnapshotError(createSnapshot('a', {}), new Map([['o', operation]])), 'disk')
  t.equal(findSnapshotError(createSnapshot('b', {}), new Map([['o', operation]])), null)
})

t.test('the machine that joins', async (t) => {
  const machine = (id: string, hostname: string) =>
    [id, { id, hostname, kind: 'machine', desiredState: 'running' } as Box] as const
  const expect = (name: string | null) => ({
    enrollment: { name, expiresAt: '' },
    command: '',
    knownIds: new Set(['old']),
  })
  const find = (name: string | null, ...boxes: ReturnType<typeof machine>[]) =>
    findJoined(expect(name), new Map([machine('old', 'fig'), ...boxes]))?.id ?? null
  t.equal(find(null), null)
  t.equal(find(null, machine('a', 'pear')), 'a')
  t.equal(find(null, machine('a', 'pear'), machine('b', 'kiwi')), null, 'not known which')
  t.equal(find('kiwi', machine('a', 'pear'), machine('b', 'kiwi')), 'b')
})

t.test('the filters of the audit log', async (t) => {
  const filter = {
    ...NO_FILTER,
    since: '2026-01-31T09:30Z',
    kind: 'key.create, key.revoke',
    origin: 'server',
  }
  t.equal(
    String(toPageQuery(filter, 7)),
    'since=2026-01-31T09%3A30%3A00.000Z&kind=key.create%2Ckey.revoke&origin=server&limit=50&before=7',
  )
  t.equal(formatCsvPath({ ...NO_FILTER, since: 'nothing' }), 'api/v1/audit?format=csv')
  t.equal(
    formatAuditCommand(filter),
    'box audit --since 2026-01-31T09:30:00.000Z --kind key.create,key.revoke --origin server',
  )
  t.same([...KINDS].sort(), [...AUDIT_KINDS].sort())
  t.same(groupKinds(['key.create', 'aws_role.verify', 'key.revoke', 'exec']), [
    { object: 'aws role', kinds: ['aws_role.verify'] },
    { object: 'exec', kinds: ['exec'] },
    { object: 'key', kinds: ['key.create', 'key.revoke'] },
  ])
})

t.test('boxes have the newest name of their events', async (t) => {
  const event = (kind: string, boxId: string | null, name?: string) => ({
    kind,
    boxId,
    detail: name === undefined ? {} : { name },
  })
  t.same(
    [
      ...getNamesOfEvents([
        event('box.delete', 'a', 'plum'),
        event('secret.mount', 'b', 'TOKEN'),
        event('box.create', 'b', 'kiwi'),
        event('box.create', 'a', 'fig'),
        event('box.delete', 'c'),
        event('workspace.create', null),
      ]),
    ],
    [
      ['a', 'plum'],
      ['b', 'kiwi'],
    ],
  )
})

t.test('an event of the audit log is a sentence', async (t) => {
  const describe = (kind: string, fields: object = {}) => {
    const event = {
      kind,
      actorUserId: 'usr_1',
      actorTokenId: null,
      actorKind: 'user',
      boxId: null,
      detail: {},
    }
    return describeEvent({ ...event, ...fields } as never, names)
      .map(({ text }) => text)
      .join('')
  }
  const ofBox = { boxId: 'id-1' }
  t.equal(describe('box.delete', ofBox), 'ann deleted box fig')
  t.equal(describe('box.delete', { boxId: 'id-2-long' }), 'ann deleted box id-2-lon (deleted)')
  t.equal(
    describe('box.resize', { ...ofBox, detail: { from: 'nano', to: 'pro' } }),
    'ann resized box fig from nano to pro',
  )
  t.equal(describe('box.resize', ofBox), 'ann resized box fig', 'zero data retention has erased the detail')
  t.equal(
    describe('box.give', { ...ofBox, detail: { to: 'usr_1', email: null } }),
    'ann gave box fig to another member, ann',
  )
  t.equal(
    describe('secret.grant', { detail: { name: 'TOKEN', userId: 'usr_2' } }),
    'ann granted secret TOKEN to a former member',
  )
  t.equal(
    describe('policy.update', { detail: { fields: 'memberBoxLimit,other' } }),
    'ann changed policies: Boxes of each member, other',
  )
  t.equal(
    describe('audit.prune', { actorUserId: null, actorKind: 'system', detail: { deleted: 7 } }),
    'The coordinator deleted 7 expired events',
  )
  t.equal(
    describe('key.create', { actorUserId: 'usr_2', detail: { name: 'ci' } }),
    'A former member created API key ci',
  )
  t.equal(describe('billing.low'), 'Balance became low')
  t.equal(describe('of.a.later.version'), 'ann: of.a.later.version')
  t.equal(describe('toString'), 'ann: toString')
  for (const kind of AUDIT_KINDS) {
    const everyField = new Proxy({}, { get: (_, name) => String(name) })
    t.notMatch(describe(kind, { ...ofBox, detail: everyField }), /[{}[\]|]/, kind)
    t.notMatch(describe(kind), /[{}[\]|]| {2}| $/, `${kind} without a detail`)
    t.match(describeKind(kind), /^[A-Z][^{}[\]|]*[a-z]$/, kind)
  }
  t.equal(describeKind('key.create'), 'Created API key')
  t.equal(new Set(KINDS.map(describeKind)).size, KINDS.length, 'each kind has a name of its own')
})

t.test('the days of events', async (t) => {
  const event = (at: Date) => ({ at: at.toISOString() })
  const [a, b, c] = [new Date(2026, 0, 31, 9), new Date(2026, 0, 31, 1), new Date(2026, 0, 29, 23)].map(event)
  t.same(groupByDay([a, b, c] as never), [
    { day: '2026-01-31', events: [a, b] },
    { day: '2026-01-29', events: [c] },
  ])
  const now = new Date(2026, 1, 1, 12).getTime()
  t.equal(formatDay('2026-02-01', now), 'Today')
  t.equal(formatDay('2026-01-31', now), 'Yesterday')
  t.equal(formatDay('2026-01-29', now), 'Thu 2026-01-29')
})

const names = { users: new Map([['usr_1', 'ann']]), boxes: new Map([['id-1', 'fig']]) }

t.test('events of the audit log are described with names', async (t) => {
  const describe = (detail: object) =>
    listDetails(detail as never, names, () => 'noon')
      .map((pair) => pair.join(': '))
      .join(', ')
  t.equal(
    describe({ keyId: 'key_1', name: 'ci', access: null, boxIds: 'id-1,id-2' }),
    'Name: ci, Box: fig, id-2',
  )
  t.equal(describe({ userId: 'usr_1', previousRole: 'owner' }), 'User: ann, Previous role: owner')
  t.equal(
    describe({ ticketId: 'tkt_1', expiresAt: '2026-01-31T09:30:00.000Z' }),
    'Ticket: tkt_1, Expires at: noon',
  )
  const actor = (fields: object) =>
    describeActor({ actorUserId: null, actorTokenId: null, actorKind: 'user', ...fields } as never, names)
  t.equal(actor({ actorUserId: 'usr_1' }), 'ann')
  t.equal(actor({ actorUserId: 'usr_2' }), 'a former member')
  t.equal(actor({ actorKind: 'system' }), 'the coordinator')
  t.equal(actor({ actorTokenId: 'key_1' }), 'a key without a user')
})

const sha256 = createSha256(webcrypto.subtle as never)

/** A chain of the coordinator's own code, in pages of two events. */
function createChain(count: number) {
  let hash = START_HASH
  const events = Array.from({ length: count }, (_, index): AuditChainEvent => {
    const sealed = sealAuditEvent(
      {
        ...{ workspace_id: 'ws_1', no: index + 1, at: 1_000 * index, kind: 'exec', origin: 'client' },
        ...{
          actor_kind: 'user',
          actor_user_id: null,
          actor_token_id: 'ü',
          box_id: null,
          detail: '{"a":"ü"}',
        },
      },
      hash,
    )
    hash = sealed.hash
    return {
      id: sealed.no,
      at: new Date(sealed.at).toISOString(),
      kind: sealed.kind,
      origin: 'client',
      actorKind: 'user',
      actorUserId: null,
      actorTokenId: 'ü',
      boxId: null,
      detail: sealed.detail,
      salt: sealed.salt,
      detailHash: sealed.detail_hash,
      hash: sealed.hash,
    }
  })
  const load = async (after: number) => {
    const rest = events.filter(({ id }) => id > after)
    const page = rest.slice(0, 2)
    return {
      workspaceId: 'ws_1',
      start: { id: 0, hash: START_HASH },
      head: { id: count, hash, at: null },
      events: page,
      next: rest.length > page.length ? (page.at(-1)?.id ?? null) : null,
    }
  }
  return { events, load }
}

t.test('the hash chain', async (t) => {
  if (sha256 === null) throw new Error('no SHA-256')
  t.equal(await sha256('ü'), createHash('sha256').update('ü').digest('hex'))
  t.equal(createSha256(undefined), null)
  const progress: number[] = []
  const intact = createChain(5)
  t.match(await verifyChain(intact.load, sha256, (count) => progress.push(count)), {
    events: 5,
    problem: null,
  })
  t.same(progress, [2, 4, 5])
  const erased = createChain(3)
  Object.assign(erased.events[1] ?? {}, { detail: null, salt: null })
  t.match(await verifyChain(erased.load, sha256), { events: 3, problem: null })
  const changes: [string, RegExp, (events: AuditChainEvent[]) => void][] = [
    [
      'a changed field',
      /hash of event 2 is wrong/,
      (events) => Object.assign(events[1] ?? {}, { kind: 'prompt' }),
    ],
    [
      'a changed detail',
      /detail of event 2 was changed/,
      (events) => Object.assign(events[1] ?? {}, { detail: '{}' }),
    ],
    [
      'an erased detail',
      /detail of event 3 was erased/,
      (events) => Object.assign(events[2] ?? {}, { detail: null, salt: null, origin: 'server' }),
    ],
    ['a removed event', /Event 2 is missing/, (events) => events.splice(1, 1)],
    ['a removed end', /Events after 4 are missing/, (events) => events.pop()],
  ]
  for (const [name, problem, change] of changes) {
    const { events, load } = createChain(5)
    change(events)
    t.match(await verifyChain(load, sha256), { problem }, name)
  }
})

t.test('the command palette', async (t) => {
  const boxes = new Map(
    ['fig', 'pear', 'bigfig'].map((hostname, index) => {
      const observedState = index === 1 ? 'suspended' : 'running'
      return [
        hostname,
        { id: hostname, hostname, observedState, desiredState: 'running', kind: 'managed' } as Box,
      ]
    }),
  )
  const find = (text: string, role: 'owner' | 'contractor' = 'owner') =>
    findPaletteItems(listPaletteItems(boxes, { user: { role }, billing: 'off' }), text).map(
      ({ label }) => label,
    )
  t.same(find('').slice(0, 4), ['Create a box', 'Boxes', 'Prompts', 'Snapshots'])
  t.equal(find(' FIG')[0], 'fig', 'a label that begins with the text is first')
  t.ok(find('fig').includes('bigfig'))
  t.same(find('wake'), ['Wake pear'])
  t.same(find('pear suspend'), [])
  t.ok(find('suspend fig').includes('Suspend bigfig'))
  t.same(find('audit'), ['Audit log'])
  t.same(find('invoice'), [], 'billing is off')
  t.same(find('who deleted'), ['Audit log'], 'by another word')
  t.same(find('audit', 'contractor'), [])
  const many = new Map(
    Array.from({ length: 1000 }, (_, n) => [
      `${n}`,
      { ...boxes.get('fig'), id: `${n}`, hostname: `box-${n}` } as Box,
    ]),
  )
  const startedAt = performance.now()
  t.equal(
    findPaletteItems(listPaletteItems(many, { user: { role: 'owner' }, billing: 'off' }), 'box-9').length,
    50,
  )
  t.comment(`1,000 boxes: ${(performance.now() - startedAt).toFixed(1)} ms`)
})

t.test('the form of an environment: its request, and the commands that do the same', async (t) => {
  const environment = {
    name: 'web',
    description: 'for tests',
    image: 'node:24',
    vars: [
      { name: 'A', value: '1' },
      { name: 'B', value: '2' },
    ],
    toggles: { ...NO_TOGGLES, git: true },
  } as Environment
  const values = toEnvironmentValues(environment)
  t.same(values, {
    name: 'web',
    description: 'for tests',
    image: 'node:24',
    vars: 'A=1\nB=2',
    toggles: 'git',
  })
  t.equal(toPatchRequest(environment, values), null, 'nothing has changed')
  const changed = { name: 'api', description: '', image: 'node:26', vars: 'A=1\nC=x y', toggles: 'cloud' }
  t.same(toPatchRequest(environment, changed), {
    name: 'api',
    description: null,
    image: 'node:26',
    vars: { A: '1', C: 'x y' },
    toggles: { restricted: false, git: false, cloud: true, codingAgents: false },
  })
  t.equal(
    formatChangeCommand(environment, changed),
    [
      'box environments unset web B',
      'box environments toggle web git off',
      'box environments toggle web cloud on',
      "box environments set web 'C=x y' --image node:26 --description '' --name api",
    ].join(' && '),
  )
  const several = { ...environment, vars: [{ name: 'KEY', value: 'one\ntwo' }] }
  t.equal(toEnvironmentValues(several).vars, undefined, 'a value of several lines is no line of a form')
  t.equal(toPatchRequest(several, toEnvironmentValues(several)), null)
  t.equal(acceptsEnvironment({ name: 'web', vars: 'A=1\n\nB=' }), true)
  t.equal(acceptsEnvironment({ name: 'web', vars: 'no value' }), false)
  t.equal(acceptsEnvironment({ vars: 'A=1' }), false)
  t.equal(
    formatCreateCommand({ name: 'web', vars: 'A=1', toggles: 'restricted\ncodingAgents', isDefault: 'yes' }),
    'box environments create web -e A=1 --restricted --coding-agents --default',
  )
})

t.test('downloads of images: progress, errors, and a cancel', async (t) => {
  let pulls: readonly ImagePull[] = []
  const settled = new Map<string, PromiseWithResolvers<never>>()
  const downloads = createImagePulls(
    ({ image }, { signal, onProgress }) => {
      const result = Promise.withResolvers<never>()
      settled.set(image, result)
      signal.addEventListener('abort', () => result.reject(signal.reason))
      onProgress({ layers: [{ id: 'a', status: 'waiting', currentBytes: 0, totalBytes: null }] })
      return result.promise
    },
    (list) => {
      pulls = list
    },
  )
  downloads.start({ image: 'a' })
  downloads.start({ image: 'b' })
  t.match(pulls, [
    { request: { image: 'b' }, state: 'running', layers: [{ id: 'a' }] },
    { request: { image: 'a' }, state: 'running' },
  ])
  downloads.cancel(pulls[0]?.id ?? 0)
  settled.get('a')?.reject(new Error('no'))
  await new Promise(setImmediate)
  t.match(pulls, [
    { state: 'canceled', error: null },
    { state: 'failed', error: { message: 'no' } },
  ])
  downloads.clear()
  t.same(pulls, [])
  const layer = (status: 'complete' | 'downloading', currentBytes: number, totalBytes: number | null) => ({
    ...{ id: 'a', status, currentBytes, totalBytes },
  })
  t.equal(summarizeLayers([]), null)
  t.same(summarizeLayers([layer('complete', 0, 1024), layer('downloading', 9999, 1024)]), {
    text: '1 of 2 layers, 2 KiB of 2 KiB',
    value: 2048,
    max: 2048,
  })
  t.same(summarizeLayers([layer('complete', 5, null), layer('downloading', 5, null)]), {
    text: '1 of 2 layers',
    value: 1,
    max: 2,
  })
})
