// The pure parts of the page of boxes and of the settings of a box.

import t from 'tap'
import { createError } from '../../../client/http/errors.ts'
import { runForEach } from '../../../dashboard/data/batch.ts'
import {
  acceptsSchedule,
  formatScheduleCommand,
  listScheduleValues,
  toScheduleRequest,
} from '../../../dashboard/data/box-schedule.ts'
import {
  acceptsBox,
  formatCreateCommand,
  toAdmission,
  toCreateRequest,
} from '../../../dashboard/data/create-box.ts'
import { groupEvents } from '../../../dashboard/data/event-groups.ts'
import {
  getLastActivity,
  getOwner,
  listSettings,
  mayGive,
  selectBoxes,
} from '../../../dashboard/data/items.ts'
import {
  type Box,
  type BoxEvent,
  createBoxRequestSchema,
  patchBoxRequestSchema,
} from '../../../shared/api/boxes.ts'
import type { Environment } from '../../../shared/api/environments.ts'
import type { RegionInfo } from '../../../shared/api/images.ts'
import type { Snapshot } from '../../../shared/api/snapshots.ts'
import type { TeamBox } from '../../../shared/api/team.ts'

const createBox = (hostname: string, fields: Partial<Box> = {}) =>
  ({
    id: hostname,
    hostname,
    kind: 'managed',
    observedState: 'running',
    desiredState: 'running',
    ownerUserId: 'usr_1',
    updatedAt: '2026-01-01T00:00:00.000Z',
    autoPauseMin: 60,
    pauseAt: null,
    autoSnapshotHours: null,
    deleteAt: null,
    autoSnapshotKeep: 3,
    ...fields,
  }) as Box

t.test('owners, usage and activity', async (t) => {
  const labels = { team: 'web', stage: '' }
  const [fig, pear] = [createBox('fig', { labels }), createBox('pear', { ownerUserId: 'usr_2' })]
  const boxes = new Map([fig, pear].map((box) => [box.id, box]))
  const team = new Map([
    [
      'fig',
      {
        ownerUserId: 'usr_1',
        ownerEmail: 'ada@example.com',
        cpuPct: 3,
        lastExecAt: '2026-01-03T00:00:00.000Z',
      } as TeamBox,
    ],
    [
      'pear',
      { ownerUserId: 'usr_1', ownerEmail: 'ada@example.com', cpuPct: 70, lastPromptAt: null } as TeamBox,
    ],
  ])
  t.same(
    [getOwner(fig, team), getOwner(pear, team)],
    ['ada@example.com', 'usr_2'],
    'an earlier owner is not shown',
  )
  t.same(
    [getLastActivity(fig, team), getLastActivity(pear, team)],
    ['2026-01-03T00:00:00.000Z', pear.updatedAt],
  )
  const select = (filter: string, sort: 'usage' | 'activity') =>
    selectBoxes(boxes, filter, sort, team).map(({ hostname }) => hostname)
  t.same(select('', 'usage'), ['pear', 'fig'])
  t.same(select('', 'activity'), ['fig', 'pear'])
  t.same(select('ADA@', 'activity'), ['fig'])
  t.same(select('team=web stage', 'activity'), ['fig'], 'labels')
})

t.test('an action on several boxes tries each, and lists the failures in order', async (t) => {
  const tried: number[] = []
  const failures = await runForEach([1, 2, 3, 4, 5], async (item) => {
    tried.push(item)
    if (item % 2 === 0) throw createError({ code: 'name_taken', message: `no ${item}`, status: 409 })
  })
  t.same(tried.sort(), [1, 2, 3, 4, 5])
  t.match(failures, [
    { item: 2, error: { code: 'name_taken' } },
    { item: 4, error: { message: 'no 4' } },
  ])
})

t.test('the form that creates a box', async (t) => {
  t.same(toCreateRequest({}), {})
  t.equal(formatCreateCommand({}), 'box create')
  const values = {
    ...{ name: 'fig', tier: 'nano', region: 'us-west-2', image: 'debian:12', environment: '-', from: '' },
    ...{ ttl: ' 90 ', autoPause: '30', restricted: 'yes' },
  }
  const request = toCreateRequest(values)
  t.same(request, {
    name: 'fig',
    tier: 'nano',
    region: 'us-west-2',
    image: 'debian:12',
    environment: null,
    ttlMinutes: 90,
    autoPauseMin: 30,
    restricted: true,
  })
  t.ok(createBoxRequestSchema.safeParse(request).success)
  t.equal(
    formatCreateCommand(values),
    'box create fig --tier nano --region us-west-2 --image debian:12 --environment none --ttl 90m --auto-pause 30m --restricted',
  )
  t.same(toCreateRequest({ from: 'snp_1' }), { fromSnapshotId: 'snp_1' })
  t.same(
    [{}, { ttl: '5' }, { ttl: 'x' }, { autoPause: '0' }, { from: 'a' }, { from: 'a', image: 'b' }].map(
      acceptsBox,
    ),
    [true, true, false, false, true, false],
  )
})

t.test('what the form of a new box asks for', async (t) => {
  const choices = {
    regions: [
      { region: 'us-west-2', isDefault: true, images: false, defaultImage: null },
      { region: 'us-east-1', isDefault: false, images: true, defaultImage: 'debian:12' },
    ] as RegionInfo[],
    environments: [
      { name: 'web', isDefault: false, image: 'node:24' },
      { name: 'plain', isDefault: false, image: null },
    ] as Environment[],
  }
  const snapshots = [
    { id: 'snap_1', image: 'ubuntu:24.04', region: 'us-east-1', sizeGb: 3, tier: 'flow' } as Snapshot,
  ]
  const withDefault = {
    ...choices,
    environments: [{ name: 'd', isDefault: true, image: 'x' } as Environment],
  }
  const getImage = (values: Record<string, string>, all = choices) =>
    toAdmission(values, snapshots, all).image
  t.equal(getImage({}), null, 'the default region has no images')
  t.equal(getImage({ region: 'us-east-1' }), 'debian:12', 'the default image of the region')
  t.equal(getImage({ environment: 'web' }), 'node:24', 'the image of the environment')
  t.equal(getImage({ environment: 'plain', region: 'us-east-1' }), 'debian:12')
  t.equal(getImage({ image: 'alpine:3', environment: 'web' }), 'alpine:3')
  t.equal(getImage({}, withDefault), 'x')
  t.equal(getImage({ environment: '-' }, withDefault), null)
  const ofSnapshot = { image: 'ubuntu:24.04', region: 'us-east-1', sizeGb: 3 }
  t.same(toAdmission({ from: 'snap_1' }, snapshots, choices), { ...ofSnapshot, tier: 'flow' })
  t.same(toAdmission({ from: 'snap_1', tier: 'pro' }, snapshots, choices), { ...ofSnapshot, tier: 'pro' })
  t.equal(toAdmission({}, snapshots, choices).tier, null)
})

t.test('the form of the schedule sends what was changed', async (t) => {
  const box = createBox('fig')
  const values = Object.fromEntries(listScheduleValues(box).map(({ name, value }) => [name, value]))
  t.same(values, {
    autoPauseMin: '60',
    ttlMinutes: '',
    deleteAfterMinutes: '',
    autoSnapshotHours: '',
    autoSnapshotKeep: '3',
  })
  t.same(toScheduleRequest(box, values), {})
  const changed = {
    ...values,
    autoPauseMin: '',
    ttlMinutes: 'off',
    autoSnapshotHours: '24',
    autoSnapshotKeep: '7',
  }
  const request = toScheduleRequest(box, changed)
  t.same(request, { autoPauseMin: null, ttlMinutes: null, autoSnapshotHours: 24, autoSnapshotKeep: 7 })
  t.ok(patchBoxRequestSchema.safeParse(request).success)
  t.equal(
    formatScheduleCommand(box, changed),
    'box set fig --auto-pause off --ttl off --auto-snapshot 24h --keep 7',
  )
  t.same(
    [values, changed, { ...values, autoSnapshotKeep: '' }, { ...values, autoPauseMin: '1h' }].map(
      acceptsSchedule,
    ),
    [true, true, false, false],
  )
})

t.test('events that follow each other for one reason are one', async (t) => {
  const event = (toState: string, fromState: string | null, minute: number, fields = {}) =>
    ({
      ...{ id: `${minute}`, toState, fromState, reason: 'created', actor: 'user:u1', code: null },
      ...{ at: `2030-01-01T00:${String(minute).padStart(2, '0')}:00.000Z`, ...fields },
    }) as BoxEvent
  const groups = groupEvents([
    event('running', 'waking', 41, { reason: 'woken' }),
    event('running', 'waking', 40, { reason: 'woken' }),
    event('waking', 'suspended', 20, { reason: 'woken' }),
    event('running', 'provisioning', 2),
    event('provisioning', 'requested', 1, { actor: 'system' }),
    event('requested', null, 0, { actor: 'system' }),
  ])
  t.same(
    groups.map(({ event: { id }, earlier }) => [id, earlier]),
    [
      ['41', []],
      ['40', []],
      ['20', []],
      ['2', []],
      ['1', ['requested']],
    ],
    'not with a gap, by another actor, or after another state',
  )
  t.same(
    groupEvents([
      event('running', 'provisioning', 2),
      event('provisioning', 'requested', 1),
      event('requested', null, 0),
    ]),
    [{ event: event('running', 'provisioning', 2), earlier: ['requested', 'provisioning'] }],
  )
  t.same(groupEvents([]), [])
})

t.test('settings depend on the state', async (t) => {
  const list = (fields: Partial<Box>) => listSettings(createBox('fig', fields))
  t.same(list({}), ['rename', 'give', 'schedule', 'resize', 'move', 'template', 'stop'])
  t.same(list({ kind: 'machine' }), ['rename', 'give'])
  t.same(list({ desiredState: 'terminated' }), [])
  t.same(list({ observedState: 'deep_sleep' }), ['rename', 'give', 'schedule', 'template'])
  t.ok(list({ observedState: 'suspended', suspendedAs: 'frozen' }).includes('stop'))
  t.notOk(list({ observedState: 'suspended', suspendedAs: 'stopped' }).includes('stop'))
})

t.test('an owner gives every box, a member the own ones, a contractor none', async (t) => {
  const box = createBox('fig', { ownerUserId: 'usr_1' })
  t.ok(mayGive(box, { id: 'usr_2', role: 'owner' }))
  t.ok(mayGive(box, { id: 'usr_1', role: 'member' }))
  t.notOk(mayGive(box, { id: 'usr_2', role: 'member' }))
  t.notOk(mayGive(box, { id: 'usr_1', role: 'contractor' }))
})
