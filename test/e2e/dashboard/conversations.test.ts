// The page of the conversations of a box, in a browser, with an agent in memory: what each action did is checked with the
// requests that the agent has received, and with the API.

import t from 'tap'
import type { TunnelCall } from '../../../coordinator/agents/tunnel/types.ts'
import { startBoxWithFakeAgent } from '../../support/box-with-fake-agent.ts'
import { NO_BROWSER, startBrowser } from '../../support/browser.ts'
import { collectProblems, signIn, waitForExpression } from '../../support/dashboard.ts'
import { createFakePromptAgent, type FakePromptAgent, respondJson } from '../../support/fake-prompt-agent.ts'
import { waitUntil } from '../../support/wait-until.ts'

/** The agent in memory has no list of conversations, and queues every prompt that may wait. */
function completeAgent(agent: FakePromptAgent): void {
  const isRunning = (conversation: string | undefined) =>
    [...agent.runs.values()].some(
      ({ run }) => run.status === 'running' && run.conversationId === conversation,
    )
  const queued = new Map<string, { conversationId: string; prompt: string }>()
  const listQueued = (conversation: string | null) =>
    [...queued]
      .filter(([id]) => agent.queued.has(id))
      .filter(([, entry]) => conversation === null || entry.conversationId === conversation)
      .map(([id, { conversationId, prompt }], index) => ({
        ...{ id, conversationId, prompt, provider: 'claude', model: null, position: index + 1 },
        queuedAt: '2026-01-01T00:00:00.000Z',
      }))
  agent.override = (request: TunnelCall) => {
    const { pathname, searchParams } = new URL(request.path, 'http://agent')
    if (request.method === 'POST' && pathname === '/prompts') {
      const body = JSON.parse(String(request.body))
      if (isRunning(body.conversationId))
        queued.set(body.runId, { conversationId: body.conversationId, prompt: body.prompt })
      else request.body = JSON.stringify({ ...body, queue: false })
      return undefined
    }
    if (request.method !== 'GET') return undefined
    if (pathname === '/prompts/conversations') {
      const runs = [...agent.runs.values()].map(({ run }) => run)
      const conversations = [...new Set(runs.map(({ conversationId }) => conversationId))].map((id) => {
        const own = runs.filter(({ conversationId }) => conversationId === id)
        const last = own.at(-1)
        return {
          ...{ id, provider: last?.provider, model: null, cwd: '~', prompts: own.length },
          ...{ queued: listQueued(id).length, running: isRunning(id), lastRunId: last?.id },
          ...{ lastStatus: last?.status, sessionId: null, lastPrompt: last?.prompt },
          ...{ createdAt: last?.startedAt, updatedAt: last?.startedAt },
        }
      })
      const running = runs.filter(({ status }) => status === 'running').length
      return Promise.resolve(
        respondJson(200, { ok: true, type: 'prompt.conversations', conversations, running, limit: 4 }),
      )
    }
    if (pathname !== '/prompts') return undefined
    const conversation = searchParams.get('conversation')
    const runs = [...agent.runs.values()]
      .map(({ run }) => run)
      .filter((run) => conversation === null || run.conversationId === conversation)
      .reverse()
    const active = runs.find(({ status }) => status === 'running') ?? null
    return Promise.resolve(
      respondJson(200, { ok: true, type: 'prompt.list', runs, active, queued: listQueued(conversation) }),
    )
  }
}

t.test('the conversations of a box', { skip: NO_BROWSER }, async (t) => {
  const agent = createFakePromptAgent()
  completeAgent(agent)
  const { box, pageUrl, dataDir, infra, api, waitForState } = await startBoxWithFakeAgent(t, agent.handler)
  infra.tunnels.on('disconnected', agent.disconnect)
  const old = agent.addRun({ prompt: '<b>old</b>\u202e prompt', provider: 'codex' })
  agent.addEvents(old, 1, {
    text: '# Done\n\n**bold** `code` <script>alert(1)</script>\n\n- [link](https://a.example/x) ![i](https://a.example/i.png)\n- [bad](javascript:alert(1))',
  })
  agent.finish(old)
  const page = await (await startBrowser(t)).newPage()
  await page.goto(`${pageUrl}/boxes/${box.hostname}/conversations`)
  await signIn(page, dataDir)
  const problems = collectProblems(page)
  const link = (name: string | RegExp) => page.getByRole('link', { name })
  const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true })
  const prompt = page.getByRole('textbox', { name: 'Prompt' })
  const setVisibility = (state: 'hidden' | 'visible') =>
    page.evaluate(
      `Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true }); document.dispatchEvent(new Event('visibilitychange'))`,
    )
  const getRun = async (text: string) =>
    [...agent.runs.values()].find(({ run }) => run.prompt === text) ??
    Promise.reject(new Error(`there is no run of ${text}`))

  await t.test('an answer is shown as text, and a link shows where it leads', async (t) => {
    await page.locator('.agent', { hasText: 'Claude Code' }).getByText('not reported yet').waitFor()
    await link('<b>old</b>⟨U+202E⟩ prompt').click()
    await page.getByText('Done', { exact: true }).waitFor()
    t.equal(await page.locator('.markdown strong').textContent(), 'bold')
    t.match(await page.locator('.markdown').textContent(), /<script>alert\(1\)<\/script>/)
    t.match(await page.locator('.markdown').textContent(), /\[bad\]\(javascript:alert\(1\)\)/)
    const web = page.locator('.markdown a[href="https://a.example/x"]')
    t.equal(await web.textContent(), 'https://a.example/x')
    t.equal(await web.getAttribute('rel'), 'noopener noreferrer')
    t.equal(await page.locator('main img').count(), 0)
    await page.reload()
    await page.getByText('Done', { exact: true }).waitFor()
  })

  await t.test('start a conversation with the keyboard only, and follow it', async (t) => {
    await link('New conversation').click()
    await button('Default model').click()
    await page.getByLabel('Model').fill('claude-opus-5')
    await page.getByLabel('Effort').selectOption('high')
    await page.getByLabel('Directory').fill('my work')
    await page.keyboard.press('Enter')
    await button('claude-opus-5 · high effort · in my work').waitFor()
    await page.getByRole('button', { name: 'The same in a terminal' }).last().click()
    await page
      .getByText(
        `box prompt --new -p claude --queue -m claude-opus-5 --effort high -w 'my work' ${box.hostname} "…"`,
      )
      .waitFor()
    await prompt.focus()
    await page.keyboard.type('Fix the bug')
    await page.keyboard.press('Control+Enter')
    await page.getByRole('region', { name: 'Run 1' }).waitFor()
    const started = await getRun('Fix the bug')
    t.match(agent.bodiesOf('/prompts').at(-1), {
      provider: 'claude',
      new: true,
      auto: false,
      model: 'claude-opus-5',
      reasoningEffort: 'high',
      cwd: 'my work',
    })
    t.equal(new URL(page.url()).searchParams.get('conversation'), started.run.conversationId)
    agent.addEvents(started, 1, { type: 'reasoning', text: 'I think' })
    agent.addEvents(started, 1, {
      type: 'tool',
      text: null,
      tool: { name: 'Edit', input: { file_path: '/a.ts', old_string: 'one', new_string: 'two' } },
    })
    agent.addEvents(started, 1, { type: 'tool_result', text: 'edited', tool: { name: 'Edit', input: null } })
    agent.addEvents(started, 1, { text: 'It is fixed.', raw: { message: { model: 'claude-opus-5-1' } } })
    agent.addEvents(started, 1, { type: 'usage', text: '1200 input tokens, 34 output tokens, 0.05 USD' })
    await page.getByText('It is fixed.').waitFor()
    t.notOk(await page.getByText('I think').isVisible(), 'the reasoning is folded')
    await page.getByText('Reasoning').click()
    await page.getByText('I think').waitFor()
    await page.locator('summary', { hasText: 'Edit /a.ts+1−1' }).waitFor()
    await page.locator('.diff .removed', { hasText: 'one' }).waitFor()
    await page.locator('.diff .added', { hasText: 'two' }).waitFor()
    await page.getByText('edited').waitFor()
    await page.getByText('claude-opus-5-1').waitFor()
    await page.getByText('1,200 tokens in · 34 out · $0.05').waitFor()
  })

  await t.test('queue, remove from the queue, and interrupt', async (t) => {
    const { run } = await getRun('Fix the bug')
    await prompt.fill('Then the docs')
    await button('Queue').click()
    await page.getByText('Queued at position 1.').waitFor()
    t.equal(agent.queued.size, 1)
    t.match(agent.bodiesOf('/prompts').at(-1), { conversationId: run.conversationId, queue: true })
    t.notHas(agent.bodiesOf('/prompts').at(-1), { cwd: String }, 'a conversation keeps its directory')
    await button('Default model').click()
    await page.getByLabel('Model').waitFor()
    t.equal(await page.getByLabel('Directory').count(), 0)
    await page.keyboard.press('Escape')
    await button('Remove prompt 1 from the queue').click()
    await page.getByRole('region', { name: 'Queue' }).waitFor({ state: 'detached' })
    t.equal(agent.queued.size, 0)
    await waitForExpression(page, "document.activeElement.tagName === 'H1'")
    await prompt.fill('Then the docs')
    await button('Queue').click()
    await page.getByText('Queued at position 1.').waitFor()
    await prompt.fill('First this.')
    await button('Edit prompt 1 of the queue').click()
    await page.getByRole('region', { name: 'Queue' }).waitFor({ state: 'detached' })
    t.equal(agent.queued.size, 0)
    t.equal(await prompt.inputValue(), 'First this.\n\nThen the docs', 'what was typed stays')
    await button('Stop Claude Code').click()
    await page.locator('.run .state', { hasText: 'interrupted' }).waitFor()
    t.equal(run.status, 'interrupted')
    await prompt.fill('Continue')
    await button('Send').click()
    await page.getByText('Sent.').waitFor()
    t.equal((await getRun('Continue')).run.conversationId, run.conversationId)
  })

  await t.test('a hidden tab has no stream, and continues with each event once', async (t) => {
    const current = await getRun('Continue')
    agent.addEvents(current, 1, { text: 'before' })
    await page.getByText('before').waitFor()
    await setVisibility('hidden')
    await waitUntil('the stream is closed', () => agent.waiting === 0)
    agent.addEvents(current, 1, { text: 'meanwhile' })
    await setVisibility('visible')
    await page.getByText('meanwhile').waitFor()
    agent.addEvents(current, 1, { text: 'after' })
    agent.finish(current)
    await page.getByText('after').waitFor()
    const texts = await page.getByRole('region', { name: 'Run 2' }).locator('.markdown').allTextContents()
    t.same(texts, ['before', 'meanwhile', 'after'])
    await page.locator('.run .state', { hasText: 'done' }).waitFor()
  })

  await t.test('the end stays in view, until the user scrolls up', async (t) => {
    const long = agent.addRun({
      prompt: 'long',
      conversationId: (await getRun('Continue')).run.conversationId,
    })
    const isAtEnd = 'scrollY + innerHeight > document.documentElement.scrollHeight - 8'
    const latest = button('Latest')
    for (const text of ['one', 'two', 'three']) {
      agent.addEvents(long, 1, { text: `${text}\n\n`.repeat(40) })
      await page.locator('.markdown', { hasText: text }).last().waitFor()
      await waitForExpression(page, isAtEnd)
    }
    t.equal(await latest.count(), 0)
    await page.mouse.move(640, 300)
    await page.mouse.wheel(0, -2000)
    await latest.waitFor()
    const top = await page.evaluate('scrollY')
    agent.addEvents(long, 1, { text: 'below' })
    await page.getByText('below').waitFor()
    t.equal(await page.evaluate('scrollY'), top, 'the page stays where the user reads')
    await latest.click()
    await waitForExpression(page, isAtEnd)
    agent.finish(long)
    await page.locator('.run .state', { hasText: 'running' }).waitFor({ state: 'detached' })
  })

  await t.test('a narrow page shows the list or a conversation, with a way back', async (t) => {
    const list = page.getByRole('navigation', { name: 'Conversations' })
    await page.setViewportSize({ width: 390, height: 800 })
    await list.waitFor({ state: 'hidden' })
    await link('All conversations').click()
    await list.waitFor()
    t.equal(await link('New conversation').count(), 0)
    await link('Fix the bug').click()
    await list.waitFor({ state: 'hidden' })
    await page.setViewportSize({ width: 1280, height: 800 })
    await list.waitFor()
  })

  await t.test('an error keeps the text', async (t) => {
    problems.splice(0)
    const { override } = agent
    agent.override = (request) =>
      request.method === 'POST'
        ? Promise.resolve(
            respondJson(409, {
              ok: false,
              error: { code: 'provider_not_signed_in', message: 'Sign in first.' },
            }),
          )
        : override?.(request)
    await prompt.fill('Lost?')
    await button('Send').click()
    await page.getByText('provider_not_signed_in').waitFor()
    t.equal(await prompt.inputValue(), 'Lost?')
    await link('Boxes').last().click()
    await page.getByRole('heading', { name: 'Boxes' }).waitFor()
    await page.goBack()
    await prompt.waitFor()
    t.equal(await prompt.inputValue(), 'Lost?')
    agent.override = override
    t.ok(problems.splice(0).every((text) => text.includes('409')))
  })

  await page.route(`**/api/v1/boxes/${box.id}`, async (route) => {
    const response = await route.fetch()
    const coding_agents = {
      claude: 'not_signed_in',
      codex: 'ready',
      opencode: 'not_installed',
      pi: 'not_installed',
    }
    await route.fulfill({ response, json: { ...(await response.json()), vitals: { coding_agents } } })
  })
  await page.reload()
  await link('New conversation').click()
  await link('Fix the bug').waitFor()
  const choice = page.getByRole('combobox', { name: 'Coding agent' })
  await page.locator('.agent', { hasText: 'Claude Code' }).getByText('not signed in').waitFor()
  t.equal(await choice.inputValue(), 'codex', 'an agent that is ready is chosen')
  t.same(await choice.locator('option').allTextContents(), [
    'Claude Code: not signed in',
    'Codex: ready',
    'OpenCode: installed by its first prompt',
    'pi: installed by its first prompt',
  ])
  t.equal(await button(/^Install /).count(), 0)

  await t.test('a conversation whose agent is signed out has a button that signs in', async () => {
    await link('Fix the bug').click()
    await button('Sign in: Claude Code').click()
    await page.getByRole('dialog').getByLabel('Key', { exact: true }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  })

  await t.test('a suspended box', async () => {
    await api('POST', `/boxes/${box.id}/suspend`)
    await waitForState(box.id, 'suspended')
    await page.getByText('Conversations need a running box').waitFor()
  })
  t.ok(
    problems.splice(0).every((text) => text.includes('409')),
    'no violation of the policy',
  )
  await waitUntil('no stream is open', () => agent.waiting === 0)
})
