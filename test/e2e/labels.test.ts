// Labels of boxes over HTTP: POST and PATCH /boxes, the filter of GET /boxes, forks and snapshots.
import t from 'tap'
import { startTestCoordinator } from '../support/coordinator.ts'
import { createRunningBox, takeSnapshot } from './snapshots-support.ts'

t.test('labels are set, changed, listed and selected', async (t) => {
  const { api } = await startTestCoordinator(t)
  const { json } = await api('POST', '/boxes', { name: 'fig', labels: { team: 'web', stage: 'test' } })
  t.same(json.box.labels, { team: 'web', stage: 'test' })
  t.same((await api('POST', '/boxes', { name: 'plum' })).json.box.labels, {})
  const patched = await api('PATCH', `/boxes/${json.box.id}`, { labels: { stage: null, team: 'ops' } })
  t.match(patched, { status: 200, json: { box: { labels: { team: 'ops' } } } })
  t.notOk('stage' in patched.json.box.labels)
  const list = async (query: string) =>
    (await api('GET', `/boxes?${query}`)).json.boxes.map(({ hostname }: { hostname: string }) => hostname)
  t.same(await list('label=team'), ['fig'])
  t.same(await list('label=team%3Dops&label=team'), ['fig'])
  t.same(await list('label=team=web'), [])
  t.same(await list('label=team&limit=1'), ['fig'])
  t.match((await api('GET', '/audit?kind=box.update')).json.events, [
    { detail: { name: 'fig', fields: 'labels' } },
  ])
})

t.test('invalid labels are refused, and nothing is written', async (t) => {
  const { api } = await startTestCoordinator(t)
  const before = (await api('GET', '/boxes')).json.boxes
  const refused: [unknown, RegExp][] = [
    [{ Team: 'web' }, /^labels key "Team" must be 1 to 63 lowercase letters/],
    [{ '': 'web' }, /^labels key "" must be 1 to 63/],
    [{ 'a.': 'web' }, /start and end with a letter or digit$/],
    [{ ['a'.repeat(64)]: '' }, /must be 1 to 63/],
    [{ team: 'a\nb' }, /^labels.team must be a string of at most 63 characters/],
    [{ team: '\u202e' }, /^labels.team must be/],
    [{ team: 'a'.repeat(64) }, /^labels.team must be/],
    [{ team: 1 }, /^labels.team must be a string/],
    [{ team: null }, /^labels.team must be a string/],
    [Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`k${index}`, ''])), /at most 32/],
    ['team', /^labels must be a JSON object/],
  ]
  for (const [labels, message] of refused)
    t.match(
      await api('POST', '/boxes', { labels }),
      { status: 400, json: { error: 'invalid_labels', message } },
      JSON.stringify(labels),
    )
  t.equal((await api('GET', '/boxes')).json.boxes.length, before.length)
  const ok = { team: '🫐'.repeat(63), ['a/b'.repeat(21)]: '' }
  const { json } = await api('POST', '/boxes', { labels: ok })
  t.same(json.box.labels, ok)
  t.match(await api('PATCH', `/boxes/${json.box.id}`, { labels: { A: null } }), {
    status: 400,
    json: { error: 'invalid_labels' },
  })
  for (const query of ['label=Team', 'label=', 'label=a%3D%00', 'label=a&label=-'])
    t.match(
      await api('GET', `/boxes?${query}`),
      { status: 400, json: { error: 'invalid_labels', message: /must be the key of a label, or key=value/ } },
      query,
    )
  t.match(await api('GET', `/boxes?${Array(33).fill('label=a').join('&')}`), {
    status: 400,
    json: { error: 'invalid_labels', message: 'label must be given at most 32 times' },
  })
})

t.test('a fork and a box from a snapshot get the labels of the source', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api } = coordinator
  const labels = { team: 'web' }
  const boxId = await createRunningBox(coordinator, { name: 'fig', labels })
  t.same((await api('POST', `/boxes/${boxId}/fork`, {})).json.box.labels, labels)
  const snapshotId = await takeSnapshot(coordinator, boxId, 'one')
  await api('PATCH', `/boxes/${boxId}`, { labels: { team: 'ops' } })
  t.same((await api('POST', `/snapshots/${snapshotId}/restore`, {})).json.box.labels, labels)
  const create = (body: object) => api('POST', '/boxes', { fromSnapshotId: snapshotId, ...body })
  t.same((await create({})).json.box.labels, labels)
  t.same((await create({ labels: { stage: 'test' } })).json.box.labels, { stage: 'test' })
  t.same((await create({ labels: {} })).json.box.labels, {})
})
