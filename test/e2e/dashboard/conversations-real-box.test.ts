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
  await api('PATCH', `/boxes/${box.id}`, { env: { ANTHROPIC_API_KEY: 'test' } })
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
  await button(/^Interrupt claude/).click()
  await page.locator('.markdown', { hasText: 'again: second' }).waitFor()
  const { runs, queued } = (await edge(box.hostname, 'GET', '/prompts')).json
  t.match(runs, [
    { prompt: 'second' },
    { prompt: 'wait', status: 'interrupted' },
    { prompt: 'hello', status: 'done' },
  ])
  t.same(queued, [])
  t.equal(new Set(runs.map((run: Run) => run.conversationId)).size, 1)
  await page.getByRole('link', { name: 'All conversations' }).click()
  await page.getByText('0 of at most 4 runs in progress').waitFor()
  t.same(problems, [], 'no violation of the policy and no error')
})
