// Mistakes that users of other tools make: each message says what to type.
import t from 'tap'
import type { Snapshot } from '../../shared/api/snapshots.ts'
import { waitUntil } from '../support/wait-until.ts'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'
import { getUsageError } from './usage-error.ts'

const MISTAKES: Record<string, [words: string[], message: RegExp][]> = {
  'a word that is no subcommand': [
    [['secrets', 'get', 'TOKEN'], /^unknown command 'get'\nNo command shows the value.*box secrets show/],
    [['secrets', 'reveal', 'TOKEN'], /^unknown command 'reveal'\nNo command shows the value/],
    [['secrets', 'mount', 'TOKEN', 'fig'], /box mount NAME SECRET/],
    [
      ['secrets', 'sho', 'TOKEN'],
      /^unknown command 'sho'\n\(Did you mean show\?\)\nSee 'box secrets --help'/,
    ],
    [['aws', 'login'], /^unknown command 'login'\n.*box aws connect/],
    [['aws', 'rolez'], /Did you mean roles/],
    [
      ['files', 'cat', 'fig', '.profile'],
      /^unknown command 'cat'\n.*box exec NAME cat FILE.*box cp NAME:FILE -/,
    ],
    [['files', 'upload', 'fig'], /box cp FILE NAME:/],
    [['files', 'edit', 'fig'], /box ssh NAME/],
    [
      ['desktop', 'restart', 'fig'],
      /^unknown command 'restart'\n.*box desktop stop NAME.*box desktop start NAME/,
    ],
    [['repos', 'add', 'web', 'o/r'], /box environments repo/],
    [['members', 'promote', 'ada@example.com'], /box members set EMAIL/],
    [['agents', 'upgrade'], /box upgrade.*box agents rollout/],
    [['snapshots', 'take', 'fig'], /box snapshot NAME/],
    [['templates', 'new', 'web'], /box template NAME TEMPLATE/],
    [['workspace', 'switch', 'x'], /box workspace use/],
    [['machine', 'join', 'x'], /box machine add/],
    [['policies', 'reset', 'x'], /box policies set POLICY default/],
    [['environments', 'web'], /box environments show ENVIRONMENT/],
    [
      ['environments', 'repo', 'update', 'web'],
      /^unknown command 'update'\nSee 'box environments repo --help'/,
    ],
    [['keys', 'nope'], /^unknown command 'nope'\nSee 'box keys --help'/],
  ],
  'a subcommand after the name': [
    [
      ['desktop', 'fig', 'start'],
      /^too many arguments for 'desktop'.*\nThe command.* `box desktop start fig`/,
    ],
    [['repos', 'fig', 'update'], /^too many arguments for 'repos'.*\nThe command.* `box repos update fig`/],
  ],
  'a name before the command': [
    [['pear', 'exec', 'ls', '-l'], /^unknown command 'pear'\nThe command.* `box exec pear ls -l`/],
    [['mulberry', 'pear'], /^unknown command 'mulberry'\nSee 'box --help'/],
    [['mulberry', 'ls'], /^unknown command 'mulberry'\nSee 'box --help'/],
    [['docter', 'ps'], /^unknown command 'docter'\n\(Did you mean doctor\?\)/],
  ],
  'a word that is no command': [[['delete-after', 'fig', '1h'], /`box set NAME --delete-after 2h`/]],
  'an argument of a command that has none': [
    [['profile', 'ada@example.com'], /`box profile --email ADDRESS`/],
    [['billing', 'add', '10'], /`box billing`.*`boxwood credit WORKSPACE 25\.00`/],
    [['team', 'rm', 'ada'], /`box members rm EMAIL`/],
    [['regions', 'add', 'x'], /BOXWOOD_REGIONS.*`box docs engines`/],
    [['upgrade', '1.2.3'], /version that is installed.*`box docs upgrade`/],
    [['ls', 'fig'], /`box show NAME`/],
    [['usage', 'fig'], /`box usage --filter name=NAME`/],
    [['status', 'fig'], /`box show NAME`/],
    [['doctor', 'fig'], /`box show NAME`/],
  ],
  'a missing argument': [
    [['mount', 'fig'], /^missing.*\nType `box mount fig SECRET`\. `box secrets` lists the secrets\./],
    [['mount'], /Type `box mount BOX SECRET`\. `box ls` lists the boxes/],
    [['logs', '-f'], /Type `box logs NAME`/],
    [['unmount', 'fig'], /Type `box unmount fig VARIABLE`\. `box mounts NAME`/],
    [['desktop'], /Type `box desktop NAME`\. `box ls`/],
    [['give', 'fig'], /Type `box give fig MEMBER`\. `box members`/],
    [['rename', 'fig'], /Type `box rename fig NEWNAME`/],
    [['resize', 'fig'], /Type `box resize fig TIER`\. TIER: .*nano/],
    [['forward', 'fig'], /Type `box forward fig PORTS`\. `box ports NAME`/],
    [['restore'], /Type `box restore SNAPSHOT`\. `box snapshots`/],
    [
      ['environments', 'repo', 'add', 'two words'],
      /Type `box environments repo add 'two words' REPO`.*owner\/name/,
    ],
    [['policies', 'set'], /Type `box policies set POLICY VALUE`\. `box policies`/],
  ],
  'a filter as an option': [
    [['ls', '--running'], /\nUse --filter state=running\./],
    [['ls', '--stopped'], /\nUse --filter state=suspended\./],
    [['history', 'fig', '--user', 'ada lovelace'], /\nUse --filter user='ada lovelace'\./],
    [['history', 'fig', '--user=ada'], /\nUse --filter user=ada\./],
    [['ls', '--state'], /\nUse --filter state=STATE\./],
    [['snapshots', '--kind', 'auto'], /\nUse --filter kind=auto\./],
  ],
  'a port or a time before the box': [
    [['share', '3000', 'fig'], /^The port must be .* The box comes first: `box share fig 3000`\./],
    [['unshare', '3000', 'fig'], /`box unshare fig 3000`/],
    [['open', '3000', 'fig'], /`box open fig 3000`/],
  ],
}

for (const [name, rows] of Object.entries(MISTAKES))
  t.test(name, async (t) => {
    for (const [words, message] of rows) {
      const error = await getUsageError(words)
      t.equal(error.exitCode, 2, words.join(' '))
      t.match(error.message, message)
    }
  })

const coordinator = await startCliCoordinator(t, ['fig', 'plum'])
const box = (...args: string[]) => runBox(coordinator, args)

t.test('mistakes that the coordinator knows', async (t) => {
  const { api, findBox } = coordinator
  const { id } = await findBox('fig')
  await api('POST', '/secrets', { name: 'TOKEN', value: 'secret', hosts: ['example.com'] })
  await api('POST', '/environments', { name: 'web' })
  const { json } = await api('POST', '/snapshots', { boxId: id, name: 'before' })
  await waitUntil('the snapshot', async () => {
    const { snapshots } = (await api('GET', '/snapshots')).json
    return snapshots.some(({ id, status }: Snapshot) => id === json.snapshot.id && status === 'available')
  })
  const mistakes: [words: string[], message: RegExp][] = [
    [['mount', 'TOKEN', 'fig'], /No such box: 'TOKEN'\. The box comes first: `box mount fig TOKEN`\./],
    [['unmount', 'TOKEN', 'fig'], /The box comes first: `box unmount fig TOKEN`\./],
    [['rename', 'new', 'fig'], /The box comes first: `box rename fig new`\./],
    [['files', 'mkdir', 'a b', 'c', 'fig'], /The box comes first: `box files mkdir fig 'a b' c`\./],
    [['exec', 'ls', 'fig'], /The box comes first: `box exec fig ls`\./],
    [['prompt', 'x'.repeat(100), 'fig'], /The box comes first: `box prompt fig …`\./],
    [
      ['forward', '8080:3000', 'fig'],
      /'fig' is not a port.* The box comes first: `box forward fig 8080:3000`\./,
    ],
    [['ps-at', '03:14', 'fig'], /The box comes first: `box ps-at fig 03:14`\./],
    [['label', 'a=b', 'fig'], /The box comes first: `box label fig a=b`\./],
    [['template', 'web', 'fig'], /The box or snapshot comes first: `box template fig web`\./],
    [['restore', 'new', 'before'], /The snapshot or template comes first: `box restore before new`\./],
    [['secrets', 'grant', 'fig', 'TOKEN'], /The secret comes first: `box secrets grant TOKEN fig`\./],
    [['mount', 'fgi', 'TOKEN'], /No such box: 'fgi'\. Did you mean fig\? Run `box ls`/],
    [['restore', 'fig'], /No such snapshot or template: 'fig'\. The snapshot of box fig is before\./],
    [['restore', 'plum'], /Box plum has no snapshots: `box snapshot plum` takes one, `box fork plum`/],
    [['create', '--from', 'befor'], /Did you mean before\? Run `box snapshots`/],
    [
      ['create', 'zz', '--environment', 'wbe'],
      /No such environment: 'wbe'\. Did you mean web\? `box environments`/,
    ],
    [['fork', 'fig', '--environment', 'nope'], /No such environment: 'nope'\. `box environments`/],
    [['restore', 'before', '--environment', 'nope'], /No such environment: 'nope'\. `box environments`/],
    [
      ['environments', 'repo', 'add', 'web', 'git@github.com:o/r.git'],
      /Use https:\/\/github\.com\/o\/r\.git; .*--secret GITHUB_TOKEN/,
    ],
    [
      ['environments', 'create', 'x', '--repo', 'ssh://git@example.com:22/o/r'],
      /Use https:\/\/example\.com\/o\/r;/,
    ],
  ]
  for (const [words, message] of mistakes) {
    const { code, stdout, stderr } = await box(...words)
    t.not(code, 0, words.join(' '))
    t.match({ stdout, stderr }, { stdout: '', stderr: message })
  }
  t.same((await api('GET', '/boxes?live=1')).json.boxes.length, 2)
})

t.test('repos update says that a box has no repositories', async (t) => {
  coordinator.respondNext('POST /api/v1/boxes/', 202, { repos: [] })
  t.match(await box('repos', 'update', 'fig'), {
    code: 0,
    stderr: /^fig: no repositories\. .*`box environments repo add ENVIRONMENT REPO`/,
  })
})

t.test('a port may be the address that a server prints; open says that it creates a link', async (t) => {
  t.match(await box('share', 'fig', 'http://localhost:3000/index.html'), { code: 0, stdout: /fig-3000-/ })
  t.match(await box('unshare', 'fig', '127.0.0.1:3000'), { code: 0 })
  t.match(await box('share', 'fig', 'http://example.com:3000'), { code: 2, stderr: /The port must be/ })
  const created = /Created a link to port 3000 of fig, which had none\./
  t.match(await box('open', 'fig', '3000'), { code: 0, stderr: created })
  t.notMatch((await box('open', 'fig', '3000')).stderr, created)
  t.notMatch((await box('share', 'fig', '4000')).stderr, /Created/)
})
