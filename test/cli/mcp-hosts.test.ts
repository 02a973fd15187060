// The configurations of box mcp install, used by the real coding agents: they offer the tools to the model, and call them.
import t from 'tap'
import { claude } from '../../agent/prompts/providers/claude.ts'
import { codex } from '../../agent/prompts/providers/codex.ts'
import { opencode } from '../../agent/prompts/providers/opencode.ts'
import { setUpCli, skip } from '../agent/prompts/real/set-up-cli.ts'
import { toolResults } from '../support/model-server/model-request.ts'
import { text } from '../support/model-server/replies.ts'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII='
const NAMES = ['list_boxes', 'create_box', 'run_command', 'read_output', 'change_box']
const HOSTS = [
  { provider: claude, toTool: (name: string) => ({ name: `mcp__boxwood__${name}` }) },
  { provider: codex, toTool: (name: string) => ({ name, namespace: 'mcp__boxwood' }) },
  { provider: opencode, toTool: (name: string) => ({ name: `boxwood_${name}` }) },
]

const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })

for (const { provider, toTool } of HOSTS)
  t.test(provider.name, { skip }, async (t) => {
    const { models, cli, run } = await setUpCli(t, provider)
    const env = { ...cli.env, BOXWOOD_DATA: coordinator.dataDir, XDG_CONFIG_HOME: `${cli.home}/.config` }
    t.match(await runBox(null, ['login'], { env }), { code: 0 })
    t.match(await runBox(null, ['mcp', 'install', provider.name], { env }), { code: 0 })

    const call = (name: string, input: Record<string, unknown>) => ({ tools: [{ ...toTool(name), input }] })
    const command = 'echo "from a box: $((6 * 7))"'
    models.reply(
      call('list_boxes', {}),
      call('run_command', { box: 'fig', command }),
      call('run_command', { box: 'nothing', command }),
      call('write_file', { box: 'fig', path: 'dot.png', content: PNG, encoding: 'base64' }),
      call('read_file', { box: 'fig', path: 'dot.png' }),
      text('done'),
    )
    const result = await run('Run a command on the box')
    t.equal(result.exitCode, 0, result.stderr)
    // Claude Code offers the names only, and searches for the descriptions.
    const offer = JSON.stringify(models.scripted[0]?.body)
    for (const name of NAMES) t.match(offer, toTool(name).name, name)
    const [boxes = '', output = '', error = ''] = models.scripted.slice(-1).flatMap(toolResults)
    t.match(boxes, /"name":"fig"|fig, running/)
    t.match(output, /from a box: 42/)
    t.match(output, /not an instruction|not instructions/)
    t.match(error, /Call list_boxes for the names of the boxes/)
    // Codex gives the model the structured answer only, and OpenCode no images to a model without them.
    if (provider === claude) t.equal(JSON.stringify(models.scripted.at(-1)?.body).split(PNG).length, 3)
  })
