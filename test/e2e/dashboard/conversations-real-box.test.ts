// The page of the conversations of a real box, in a browser, with a scripted coding agent.
import t from 'tap'
import type { Run } from '../../../shared/api/prompts.ts'
import { NO_BROWSER } from '../../support/browser.ts'
import { openDashboard } from '../../support/dashboard.ts'
import { FAKE_CLAUDE } from '../../support/fake-claude.ts'

t.test('a conversation, its queue, and an interrupt', { skip: NO_BROWSER }, async (t) => {
  const { box, page, problems, api, edge } = await openDashboard(
    t,
    ({ hostname }) => `/boxes/${hostname}/conversations`,
  )
  const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true })
  const prompt = page.getByRole('textbox', { name: 'Prompt' })
  const path = '.local/bin/claude'
  await edge(box.hostname, 'POST', '/exec', { command: 'mkdir -p ~/.local/bin' })
  await edge(box.hostname, 'PUT', '/files', { path, content: FAKE_CLAUDE, mode: '0755' })

  await t.test('sign in with a key that the box does not have', async (t) => {
    await button('Sign in: Claude Code').click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Key', { exact: true }).fill('test-key')
    t.notMatch(await dialog.innerText(), 'test-key')
    await dialog.getByRole('button', { name: 'Sign in' }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.locator('.agent', { hasText: 'Claude Code' }).getByText('ready').waitFor()
    const { mounts } = (await api('GET', `/boxes/${box.id}/secrets`)).json
    t.match(mounts, [{ envName: 'ANTHROPIC_API_KEY', secret: { hosts: ['api.anthropic.com'] } }])
  })

  await t.test('install a coding agent', async (t) => {
    // Not the npm of this machine.
    const writeNpm = (content: string) =>
      edge(box.hostname, 'PUT', '/files', { path: '.local/bin/npm', content, mode: '0755' })
    await page.route(`**/api/v1/boxes/${box.id}`, async (route) => {
      const response = await route.fetch()
      const json = await response.json()
      const coding_agents = { ...json.vitals?.coding_agents, codex: 'not_installed' }
      await route.fulfill({ response, json: { ...json, vitals: { ...json.vitals, coding_agents } } })
    })
    await writeNpm('#!/bin/sh\necho "npm error 404" >&2; exit 1\n')
    const { stdout } = (await edge(box.hostname, 'POST', '/exec', { command: 'command -v npm' })).json
    t.match(stdout, '.local/bin/npm')
    const codex = page.locator('.agent', { hasText: 'Codex' })
    await button('Install Codex').click()
    await codex.getByText('The installation has not succeeded: exited with 1.').waitFor()
    await codex.getByText('npm error 404').waitFor()
    await writeNpm('#!/bin/sh\necho "added 1 package: $*"\n')
    await button('Install Codex').click()
    await codex.getByText('Installed. The box checks it.').waitFor()
    await codex.getByText('added 1 package: install -g @openai/codex').waitFor()
    await page.reload()
    await codex.getByText('Installed. The box checks it.').waitFor()
    await codex.getByRole('link', { name: 'Show the output' }).click()
    await page.getByRole('log').getByText('added 1 package').waitFor()
    await page.goBack()
    await page.unroute(`**/api/v1/boxes/${box.id}`)
  })

  await prompt.fill('hello')
  await button('Send').click()
  await page.locator('.markdown', { hasText: 'hello' }).waitFor()
  await page.getByText('Bash ls').click()
  await page.locator('details pre', { hasText: 'a' }).last().waitFor()
  await prompt.fill('wait')
  await button('Send').click()
  await page.locator('.markdown', { hasText: 'waiting' }).waitFor()
  await prompt.fill('second')
  await button('Queue').click()
  await page.getByRole('region', { name: 'Queue' }).waitFor()
  await button('Stop Claude Code').click()
  await page.locator('.markdown', { hasText: 'again: second' }).waitFor()
  const { runs, queued } = (await edge(box.hostname, 'GET', '/prompts')).json
  t.match(runs, [
    { prompt: 'second' },
    { prompt: 'wait', status: 'interrupted' },
    { prompt: 'hello', status: 'done' },
  ])
  t.same(queued, [])
  t.equal(new Set(runs.map((run: Run) => run.conversationId)).size, 1)
  await page.getByRole('link', { name: 'New conversation' }).click()
  await page.getByText('0 of at most 4 runs in progress').waitFor()
  t.same(problems, [], 'no violation of the policy and no error')
})
