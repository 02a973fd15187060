// The candidates of the shell completion: commands, options, values, names of boxes, ids and sessions.
import t from 'tap'
import { listNeededCommands } from '../../cli/arguments/command-line.ts'
import { complete as completeLine } from '../../cli/completion/complete.ts'
import { createProgram } from '../../cli/program.ts'
import { isCommandName } from '../../cli/register-commands.ts'
import { ApiError, controlErrorBody } from '../../shared/errors.ts'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })
const { api, instance } = coordinator
const fig = await coordinator.findBox('fig')
const { id: plumId } = await coordinator.addBox('plum')
await api('POST', `/boxes/${plumId}/suspend`)
await coordinator.waitForState(plumId, 'suspended')

process.env.BOXWOOD_URL = `${coordinator.url}/api/v1`
process.env.BOXWOOD_API_KEY = coordinator.key
const noAction = async () => undefined
const actions = { runAction: noAction, runLocalAction: noAction }

/** Returns the lines for a command line, as box __complete prints them. A space at the end starts the next word. */
async function complete(commandLine: string): Promise<string[]> {
  const line = commandLine.split(' ').slice(1)
  const names = listNeededCommands(['__complete', '--', ...line], isCommandName)
  const { candidates, includesFiles } = await completeLine(await createProgram(actions, names), line)
  const lines = candidates.map(({ value, description }) => (description ? `${value}\t${description}` : value))
  return includesFiles ? [...lines, ':files'] : lines
}

/** In a process of its own, as the scripts of the shells. */
async function runComplete(commandLine: string, url = coordinator.url): Promise<string[]> {
  const result = await runBox({ url, key: coordinator.key }, [
    '__complete',
    '--',
    ...commandLine.split(' ').slice(1),
  ])
  t.match(result, { code: 0, stderr: /^$/ }, commandLine)
  return result.stdout.split('\n').filter((line) => line !== '')
}
const getValues = async (commandLine: string) =>
  (await complete(commandLine)).map((line) => line.split('\t')[0])

t.test('commands, with their summaries', async (t) => {
  t.same(await complete('box exe'), ['exec\trun a command on a box'])
  const values = await getValues('box ')
  for (const name of ['create', 'help', 'up', 'completion']) t.ok(values.includes(name), name)
  t.notOk(values.includes('__complete'), 'the command of the scripts is hidden')
  t.notOk(values.includes('whoami'), 'aliases are candidates only when they are typed')
  t.same(await getValues('box who'), ['whoami'])
  t.same(await getValues('box help exe'), ['exec'])
  t.same(await getValues('box nosuch '), [])
})

t.test('box __complete prints the candidates', async (t) => {
  for (const line of ['box exe', 'box ', 'box exec ', 'box cp f', 'box snapshots ', 'box create --tier=m'])
    t.same(await runComplete(line), await complete(line), line)
})

t.test('options of the command, and their values', async (t) => {
  t.same(await getValues('box create --ti'), ['--tier'])
  t.same(await getValues('box create --tier m'), ['micro', 'max'])
  t.same(await getValues('box create --tier=m'), ['--tier=micro', '--tier=max'])
  t.same(await getValues('box create --region eu'), ['eu-central-1'])
  t.same(await getValues('box ls -o j'), ['json'])
  t.same(await getValues('box --v'), ['--version', '--verbose'])
  t.same(await getValues('box create --env '), [], 'a value that is free text')
  t.ok((await getValues('box whoami --')).includes('--json'), 'of an alias')
})

t.test('names of boxes, with their states', async (t) => {
  t.same(await complete('box exec '), ['plum\tsuspended', 'fig\trunning'])
  t.same(await getValues('box exec f'), ['fig'])
  t.same(await getValues('box exec -d --cwd /tmp f'), ['fig'], 'after options and their values')
  t.same(await getValues('box ssh-config fig '), ['plum'], 'without the names that are already typed')
  t.same(await getValues('box start '), ['plum'], 'only suspended boxes can be started')
  t.same(await getValues('box stop '), ['fig'])
  t.same(await getValues('box create '), [], 'a new name is not completed')
  t.same(await complete('box exec fig '), [], 'the command on the box is not completed')
  t.same(await complete('box exec fig -- ls -'), [])
  t.same(await getValues('box show fig '), [], 'no further argument')
  for (const command of ['top', 'metrics', 'ps-at', 'ports'])
    t.same(await getValues(`box ${command} f`), ['fig'], command)
  t.same(await getValues('box ps-at fig 03'), [], 'a time is not completed')
  t.same(await getValues('box top fig --sort m'), ['memory'])
  t.same(await getValues('box metrics fig --last 3'), ['30d'])
})

t.test('names of snapshots and templates, and the subcommand of their lists', async (t) => {
  const ids: string[] = []
  for (const name of ['twice', 'web', 'twice', 'once']) {
    const { json } = await api('POST', '/snapshots', { boxId: fig.id, name })
    t.match(await runBox(coordinator, ['wait', json.snapshot.id]), { code: 0 })
    ids.push(json.snapshot.id)
  }
  const [id = '', webId] = ids
  await api('POST', `/snapshots/${webId}/template`, { name: 'web' })
  t.same(await complete('box restore w'), ['web\ttemplate of fig, available'])
  t.same(await getValues('box restore o'), ['once'])
  t.ok((await getValues('box restore s')).includes(id), 'a name that several snapshots have: the ids')
  t.same(await getValues('box restore web '), [], 'a new name is not completed')
  t.same(await getValues('box create --from w'), ['web'])
  t.same(await getValues('box snapshots rm once o'), [])
  t.same(await getValues('box snapshots rm web o'), ['once'])
  t.same(await getValues('box snapshot rm o'), ['once'])
  t.same(await getValues('box snapshots '), ['rm', 'plum', 'fig'])
  t.same(await getValues('box templates '), ['rm'])
  t.same(await getValues('box templates rm '), ['web'])
  t.same(await getValues('box snapshots rm --y'), ['--yes'])
  t.same(await getValues('box fork f'), ['fig'])
})

t.test('keys of labels, and labels to remove', async (t) => {
  await api('PATCH', `/boxes/${fig.id}`, { labels: { team: 'web', 'example.com/stage': 'a b' } })
  t.same(await getValues('box ls --label '), ['example.com/stage', 'team'])
  t.same(await getValues('box label f'), ['fig'])
  t.same(await getValues('box label fig '), ['plum', 'example.com/stage-', 'team-'])
  t.same(await getValues('box create --label '), [], 'a new label is not completed')
})

t.test('cp: boxes and local files', async (t) => {
  t.same(await getValues('box cp f'), ['fig:', ':files'])
  t.same(await getValues('box cp a.txt p'), ['plum:', ':files'])
})

t.test('ids of processes and names of sessions of the box', async (t) => {
  const command = 'sleep 1000; : \u001b[2J'
  const { json } = await coordinator.edge('fig', 'POST', '/exec', { command, detached: true })
  const id = json.processId
  t.same(await complete('box kill fig p_'), [`${id}\tsleep 1000; : \uFFFD[2J`])
  t.same(await complete('box top fig '), [`${id}\tsleep 1000; : \uFFFD[2J`])
  t.same(await complete('box logs -f fig '), [`${id}\tsleep 1000; : \uFFFD[2J`])
  await coordinator.edge('fig', 'POST', '/terminal/sessions', { session: 'work' })
  t.same(await complete('box attach fig '), ['work\tlogin shell'])
  t.same(await getValues('box sessions fig --kill w'), ['work'])
})

t.test('a shell inserts a value without quotes: values with special characters are left out', async (t) => {
  coordinator.respondNext('GET /api/v1/boxes', 200, {
    boxes: ['$(reboot)', 'a b', 'ok'].map((hostname) => ({ hostname, observedState: 'running' })),
  })
  t.same(await getValues('box exec '), ['ok'])
})

t.test('without a coordinator there are no names, and no message', async (t) => {
  t.same(await runComplete('box exec ', 'http://127.0.0.1:1'), [])
  coordinator.respondNext('GET /api/v1/boxes', 401, controlErrorBody(new ApiError('unauthorized')))
  t.same(await runComplete('box exec '), [])
  // The request gets no response: the command exits by its own time limit.
  coordinator.failNext('GET /api/v1/boxes', () => undefined)
  t.same(await runComplete('box exec '), [])
})

t.test('an unknown shell is refused with the names of the known ones', async (t) => {
  t.match(await runBox(null, ['completion', 'powershell']), {
    code: 2,
    stderr: /^box: shell must be one of bash, zsh, fish/,
  })
})

t.test('ports: those that listen, and the shared ones', async (t) => {
  instance.context.heartbeats.recordPorts(fig.id, [
    { port: 3000, process: 'node', pid: 7 },
    { port: 5432, process: null, pid: null },
  ])
  t.same(await complete('box share fig '), ['3000\tnode', '5432'])
  t.same(await complete('box open fig 5'), ['5432'])
  await runBox(coordinator, ['share', 'fig', '3000', '-q'])
  t.same(await complete('box unshare fig '), ['3000\tmembers'])
  t.same(await getValues('box unshare f'), ['fig'])
  t.same(await getValues('box share fig 3000 --access a'), ['anyone'])
})

t.test('secrets, mounts and environments', async (t) => {
  t.ok((await complete('box secrets set ANTHROPIC_API')).join().startsWith('ANTHROPIC_API_KEY\t'))
  t.same(await getValues('box secrets set TOKEN --in pa'), ['path'])
  const value = { stdin: 'a-value-of-a-test' }
  await runBox(coordinator, ['secrets', 'set', 'TOKEN', '-q', '--host', 'example.com'], value)
  t.same(await complete('box secrets rotate '), ['TOKEN\texample.com'])
  t.same(await complete('box mount fig '), ['TOKEN\texample.com'])
  t.same(await getValues('box secrets grant TOKEN fi'), ['fig'])
  await runBox(coordinator, ['mount', 'fig', 'TOKEN', '--as', 'GH_TOKEN'])
  t.same(await complete('box unmount fig '), ['GH_TOKEN\tTOKEN'])
  await runBox(coordinator, ['environments', 'create', 'web', '-e', 'A=1', '--repo', 'owner/name'])
  t.same(await complete('box create --environment '), ['web\tversion 1'])
  t.same(await complete('box environments unset web '), ['A'])
  t.same(await complete('box environments repo rm web '), ['owner/name'])
  t.ok((await getValues('box environments toggle web ')).includes('codingAgents'))
})
