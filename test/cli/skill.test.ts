// box skill: each command of the instructions for coding agents runs, and exits as they say.
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { requires } from '../support/requires.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { startCliCoordinator } from './coordinator.ts'
import { listBoxCommands } from './page-commands.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, [], { machines: 'local' })
const dir = createTempDir(t, 'skill')
const skill = (await runBox(coordinator, ['skill'])).stdout
writeFileSync(join(dir, 'SKILL.md'), skill)

t.test('each command of the skill', async (t) => {
  const commands = listBoxCommands(skill)
  t.ok(commands.length > 12, `${commands.length} commands`)
  let id = ''
  for (const command of commands) {
    const args = command
      .split(/\s+/)
      .slice(1)
      .map((word) => (word === 'ID' ? id : word))
    const { code, stdout, stderr } = await runBox(coordinator, args, { cwd: dir })
    t.match({ code, stderr }, { code: 0 }, `${command}: ${stderr}`)
    if (args.includes('--detach')) id = stdout.trim()
  }
  t.match(await runBox(coordinator, ['exec', '--timeout', '1', 'scratch', '--', 'sleep', '600']), {
    code: 124,
  })
  t.match(await runBox(coordinator, ['exec', 'scratch', '--', 'exit 7']), { code: 7 })
  t.match(await runBox(coordinator, ['show', 'nowhere']), { code: 5 })
})

t.test('the frontmatter is that of the standard', (t) => {
  const [, name = '', description = ''] = /^---\nname: (.+)\ndescription: (.+)\n---\n/.exec(skill) ?? []
  t.equal(name, 'boxwood')
  t.ok(description.length > 50 && description.length <= 1024, `${description.length} characters`)
  t.ok(skill.length < 8000, `${skill.length} characters`)
  t.end()
})

t.test('install writes it where the coding agents look', async (t) => {
  const home = mkdtempSync(join(dir, 'home-'))
  const project = mkdtempSync(join(dir, 'project-'))
  const run = (args: string[]) => runBox(null, args, { cwd: project, env: { HOME: home } })
  const { code, stdout } = await run(['skill', 'install'])
  t.equal(code, 0)
  t.same(stdout.trim().split('\n'), [
    join(home, '.claude/skills/boxwood/SKILL.md'),
    join(home, '.agents/skills/boxwood/SKILL.md'),
  ])
  for (const file of stdout.trim().split('\n')) t.equal(readFileSync(file, 'utf8'), skill)
  t.match(await run(['skill', 'install', '--project']), {
    code: 0,
    stdout: '.claude/skills/boxwood/SKILL.md\n.agents/skills/boxwood/SKILL.md\n',
  })
})

t.test('a coordinator says how an agent begins', async (t) => {
  const get = async (path: string) => {
    const response = await fetch(coordinator.url + path)
    t.match(response.headers.get('content-type'), 'text/markdown')
    return response.text()
  }
  const agent = await get('/agent.md')
  const list = await get('/llms.txt')
  const links = [...list.matchAll(/\]\((\S+)\)/g)].map(([, link = '']) => link)
  t.ok(links.length > 30, `${links.length} links`)
  for (const link of links) t.equal((await fetch(link)).status, 200, link)

  t.test('its commands with box', async (t) => {
    writeFileSync(join(dir, 'notes.md'), '# Notes\n')
    await runBox(coordinator, ['rm', '--yes', 'scratch'])
    for (const command of listBoxCommands(agent))
      t.match(await runBox(coordinator, command.split(' ').slice(1), { cwd: dir }), { code: 0 }, command)
  })

  t.test('its commands with curl', { skip: requires('curl') }, async (t) => {
    const [, script = ''] = /## 2b[\s\S]*?```sh\n([\s\S]*?)```/.exec(agent) ?? []
    const env = { ...process.env, BOXWOOD_API_KEY: coordinator.key }
    const output = await new Promise<string>((resolve, reject) =>
      execFile('sh', ['-ec', script], { cwd: dir, env }, (error, stdout) =>
        error === null ? resolve(stdout) : reject(error),
      ),
    )
    t.match(output, /"exitCode":0/)
    t.match(output, /"type":"file.uploaded"/)
  })
})
