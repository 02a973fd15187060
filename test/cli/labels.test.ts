// box label, and the option --label of create and ls.
import t from 'tap'
import { LABEL_FILTER, parseLabelWords } from '../../cli/boxes/labels.ts'
import type { Box } from '../../shared/api/boxes.ts'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig', 'plum'])
const box = (...args: string[]) => runBox(coordinator, args)
const getLabels = async (name: string) => (await coordinator.findBox(name)).labels
const names = async (...args: string[]) => (await box('ls', '-q', ...args)).stdout.split('\n').slice(0, -1)

t.test('label sets and removes labels of several boxes, and prints them', async (t) => {
  t.same(await box('label', 'fig', 'plum', 'team=web', 'stage='), {
    code: 0,
    stdout: '',
    stderr: 'fig: stage, team=web\nplum: stage, team=web\n',
  })
  t.match(await box('label', 'fig', 'stage-', 'note=a=b, c', '-q'), { code: 0, stderr: '' })
  t.same(await getLabels('fig'), { note: 'a=b, c', team: 'web' })
  t.same(await box('label', 'fig'), { code: 0, stdout: 'note=a=b, c\nteam=web\n', stderr: '' })
  t.match(await box('label', 'fig', 'plum'), {
    stdout: /^fig: note=.*\nfig: team=web\nplum: stage\nplum: team=web\n$/,
  })
  t.same(JSON.parse((await box('label', 'fig', '--json')).stdout), await getLabels('fig'))
  t.match(JSON.parse((await box('label', 'fig', 'note-', '--json')).stdout), { labels: { team: 'web' } })
  t.match(await box('show', 'fig'), { stdout: /\nlabels +team=web\n/ })
})

t.test('words that are no labels are refused, and nothing is written', async (t) => {
  const before = await getLabels('fig')
  coordinator.requests.length = 0
  const refused: [string[], RegExp][] = [
    [['team=x', 'plum'], /'plum' changes no label: write KEY=VALUE to set one, and KEY- to remove one/],
    [['Team=x'], /The key 'Team' of a label must be 1 to 63 lowercase letters/],
    [['=x'], /The key '' of a label must be/],
    [['team=a\u001b'], /The value of the label team must have at most 63 characters/],
    [['A-'], /'A-' changes no label/],
    [['team=x', 'team-'], /The label team is changed twice/],
  ]
  for (const [words, stderr] of refused)
    t.match(await box('label', 'fig', ...words), { code: 2, stdout: '', stderr }, words.join(' '))
  t.match(await box('label', 'team=x'), { code: 2, stderr: /The name of a box is missing/ })
  t.match(await box('create', '--label', 'team'), {
    code: 2,
    stderr: /--label must be KEY=VALUE: 'team' has/,
  })
  t.match(await box('ls', '--label', 'Team'), { code: 2, stderr: /--label must be KEY or KEY=VALUE/ })
  t.same(coordinator.requests, [])
  t.match(await box('label', 'none', 'a=b'), { code: 5, stderr: /No such box: 'none'/ })
  t.same(await getLabels('fig'), before)
})

t.test('create --label, and the boxes of ls with a label', async (t) => {
  t.match(await box('create', 'kiwi', '--label', 'team=ops', '--label', 'stage=test', '-q'), { code: 0 })
  t.same(await getLabels('kiwi'), { stage: 'test', team: 'ops' })
  t.same(await names('--label', 'team'), ['kiwi', 'plum', 'fig'])
  t.same(await names('--label', 'team=web'), ['plum', 'fig'])
  t.same(await names('--label', 'team=web', '--label', 'stage'), ['plum'])
  t.same(await names('--filter', 'label=team=ops', '--filter', 'label=stage='), ['kiwi', 'plum'])
  t.same(await names('--filter', 'label=team', '--filter', 'name=p'), ['plum'])
  t.match(await box('ls', '--label', 'team=none'), { code: 0, stdout: '', stderr: 'No matching boxes.\n' })
  t.match(await box('ls', '--filter', 'label=Team'), { code: 2, stderr: /label=KEY or label=KEY=VALUE/ })
  t.match(await box('ls', '-o', 'wide'), {
    stdout: /LABELS.*\nkiwi .* stage=test,team=ops .*\nplum .* stage,team=web /,
  })
  t.match(await box('fork', 'kiwi', 'lime', '-q'), { code: 0 })
  t.same(await getLabels('lime'), { stage: 'test', team: 'ops' })
})

t.test('a coordinator of an earlier version, which has no labels, sends no matching box', async (t) => {
  coordinator.respondNext('GET /api/v1/boxes', 200, {
    boxes: [{ id: '1', hostname: 'fig', observedState: 'running', createdAt: '2030-01-01T00:00:00.000Z' }],
  })
  t.same(await names('--label', 'team'), [])
})

t.test('names and changes are separated', async (t) => {
  t.same(parseLabelWords(['fig', 'a=b', 'c-', 'd=']), { names: ['fig'], changes: { a: 'b', c: null, d: '' } })
  t.same(parseLabelWords(['fig', 'constructor=1']).changes, { constructor: '1' })
  t.same(LABEL_FILTER.get({ labels: { a: '' } } as unknown as Box), ['a='])
})
