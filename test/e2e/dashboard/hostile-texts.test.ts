// A hostile box, its programs and the members put every trick of the attack list into what the dashboard shows. Each is shown as
// text: no script runs, no request goes elsewhere, the terminal answers nothing, and a pasted command runs what is shown.
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Page, WebSocketRoute } from 'playwright-core'
import t, { type Test } from 'tap'
import type { TunnelCall, TunnelCallResponse } from '../../../coordinator/agents/tunnel/types.ts'
import type { BoxDetail } from '../../../shared/api/boxes.ts'
import type { FileEntry } from '../../../shared/api/files.ts'
import type { Conversation } from '../../../shared/api/prompts.ts'
import { encodeChunk } from '../../../shared/attach-format.ts'
import { ApiError } from '../../../shared/errors.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { startBoxWithFakeAgent } from '../../support/box-with-fake-agent.ts'
import { NO_BROWSER, startBrowser } from '../../support/browser.ts'
import { collectProblems, signIn } from '../../support/dashboard.ts'
import {
  createFakePromptAgent,
  type FakePromptAgent,
  respondError,
  respondJson,
} from '../../support/fake-prompt-agent.ts'
import {
  ALL_HOSTILE_TEXTS,
  HOSTILE_CLIPBOARD,
  HOSTILE_TEXTS,
  inspectPage,
  TERMINAL_SEQUENCES,
  toVisible,
  watchForAttacks,
} from '../../support/hostile-texts.ts'
import { pasteCommand, pasteCommands } from '../../support/paste-commands.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { createWorkspaceRows } from '../../support/workspace-rows.ts'

const toCommandId = (index: number) => `p_${String(index).padStart(24, '0')}`
/** Its output has all tricks. */
const COMMAND_ID = toCommandId(0)
const NOW = Date.now()
const AT = new Date(NOW).toISOString()
/** All tricks in one text. */
const COMBINED = ALL_HOSTILE_TEXTS.filter((text) => text.length < 200).join(' ')
/** Tricks as the content of an answer: each begins a paragraph. */
const MARKDOWN = ALL_HOSTILE_TEXTS.join('\n\n')

const createEntry = (name: string): FileEntry => ({
  ...{ name, type: 'file', size: 1, mode: '0644', uid: 1, gid: 1, mtime: AT },
  owner: name.slice(0, 32),
  group: name.slice(0, 32),
})

/** What the agent of the box responds, besides prompts. Undefined: not one of these requests. */
function respondHostile({ method, path }: TunnelCall, agent: FakePromptAgent): object | undefined {
  const { pathname, searchParams } = new URL(path, 'http://agent')
  if (method !== 'GET') return undefined
  if (pathname === '/files/list') {
    const links = ALL_HOSTILE_TEXTS.map((target, index): FileEntry => {
      const entry = createEntry(`link ${index}`)
      return { ...entry, type: 'symlink', target, targetType: null }
    })
    const entries = [...ALL_HOSTILE_TEXTS.map(createEntry), ...links]
    return { type: 'file.list', path: `/${HOSTILE_TEXTS.SVG}/\u202e`, entries, nextCursor: null }
  }
  if (pathname === '/files') {
    const fields = { path: `/${searchParams.get('path')}`, encoding: 'utf8', mode: '0644' }
    return { type: 'file.read', ...fields, size: MARKDOWN.length, content: MARKDOWN }
  }
  if (pathname === '/processes') {
    const processes = ALL_HOSTILE_TEXTS.map((text, index) => ({
      ...{ pid: index + 1, ppid: 0, state: 'S', threads: 1, cpuPct: 0, memBytes: 1, startedAt: AT },
      ...{ user: text.slice(0, 64), name: text.slice(0, 64), command: text, processId: null },
    }))
    const usage = { cpuPct: 1, cpuCount: 1, memUsedBytes: 1, memTotalBytes: 2 }
    return { type: 'process.list', at: AT, ...usage, total: processes.length, processes }
  }
  if (pathname === '/terminal/sessions') {
    const sessions = ALL_HOSTILE_TEXTS.slice(-LIMITS.terminalSessions).map((command, index) => ({
      ...{ session: `s${index}`, pid: 1, command, cols: 80, rows: 24, clients: 0 },
      ...{ startedAt: AT, lastActiveAt: AT },
    }))
    return { type: 'terminal.list', sessions }
  }
  const runs = [...agent.runs.values()].map(({ run }) => run)
  if (pathname === '/prompts/conversations') {
    const conversations = runs.map(
      ({ id, conversationId, provider, prompt }): Conversation => ({
        ...{ id: conversationId, provider, model: COMBINED.slice(0, 100), cwd: COMBINED, prompts: 1 },
        ...{ queued: 0, running: false, lastRunId: id, lastStatus: 'done', sessionId: null },
        ...{ lastPrompt: prompt, createdAt: AT, updatedAt: AT },
      }),
    )
    return { type: 'prompt.conversations', conversations, running: 0, limit: 4 }
  }
  if (pathname !== '/prompts') return undefined
  const conversation = searchParams.get('conversation')
  const listed = runs.filter((run) => conversation === null || run.conversationId === conversation)
  const queued = ALL_HOSTILE_TEXTS.map((prompt, index) => ({
    ...{ id: `run_${String(index).padStart(24, '0')}`, conversationId: runs[0]?.conversationId, prompt },
    ...{ provider: 'claude', model: null, position: index + 1, queuedAt: AT },
  }))
  return { type: 'prompt.list', runs: listed, active: null, queued: queued.slice(-20) }
}

function createHostileAgent() {
  const agent = createFakePromptAgent()
  agent.override = (request): Promise<TunnelCallResponse> | undefined => {
    const response = respondHostile(request, agent)
    return response && Promise.resolve(respondJson(200, { ok: true, ...response }))
  }
  // A run per trick, and one with all of them in each kind of event.
  for (const prompt of ALL_HOSTILE_TEXTS) agent.finish(agent.addRun({ prompt }))
  const last = agent.addRun({ prompt: COMBINED, error: COMBINED })
  for (const type of ['text', 'reasoning', 'notice', 'error', 'usage'])
    agent.addEvents(last, 1, { type, text: MARKDOWN })
  for (const text of ALL_HOSTILE_TEXTS) {
    const input = { file_path: text, old_string: text, new_string: `${text}x`, [text]: text }
    agent.addEvents(last, 1, { type: 'tool', text: null, tool: { name: text, input } })
    agent.addEvents(last, 1, { type: 'tool_result', text, tool: { name: text, input: null } })
  }
  agent.addEvents(last, 1, { type: 'tool', text: null, tool: { name: 'Bash', input: { command: COMBINED } } })
  agent.finish(last, 'failed')
  return { agent, last }
}

type Coordinator = Awaited<ReturnType<typeof startBoxWithFakeAgent>>

/** Rows with the tricks, as the members and the box could have caused them. The API refuses some of these texts. */
async function fillDatabase({ instance, box }: Coordinator): Promise<void> {
  const { db } = instance.context
  const { workspaceId, userId } = instance.owner ?? {}
  if (workspaceId === undefined || !userId) throw new Error('the coordinator has no owner')
  const rows = createWorkspaceRows({ workspaceId, emails: ['a@example.com'], now: NOW })
  const [key] = rows.api_keys
  const [command] = rows.commands
  const [snapshot] = rows.snapshots
  const [enrollment] = rows.enrollments
  if (!key || !command || !snapshot || !enrollment) throw new Error('a row is missing')
  const named = ALL_HOSTILE_TEXTS.map((text, index) => ({ text, id: `hostile_${index}` }))
  await db
    .insertInto('users')
    .values(
      named.map(({ text, id }) => ({
        ...{ id, email: `${text}@example.com`, name: text, role: 'member' as const },
        ...{ workspace_id: workspaceId, created_at: NOW, joined_at: NOW },
      })),
    )
    .execute()
  await db
    .insertInto('api_keys')
    .values(named.map(({ text, id }) => ({ ...key, id, hash: id, user_id: id, name: text })))
    .execute()
  await db
    .insertInto('commands')
    .values(
      ALL_HOSTILE_TEXTS.map((text, index) => ({
        ...{
          ...command,
          id: toCommandId(index),
          box_id: box.id,
          command: text,
          cwd: text,
          signal: text.slice(0, 16),
        },
        ...{ status: 'killed' as const, finished_at: NOW, requested_at: NOW - index, actor_user_id: userId },
      })),
    )
    .execute()
  const data = new TextEncoder().encode(MARKDOWN)
  const stored = { command_id: COMMAND_ID, start_offset: 0, size: data.length, data }
  await db
    .insertInto('command_output')
    .values({ ...stored, stream: 'stdout' })
    .execute()
  await db
    .updateTable('commands')
    .set({ stdout_bytes: data.length })
    .where('id', '=', stored.command_id)
    .execute()
  await db
    .insertInto('snapshots')
    .values(
      named.map(({ text, id }, index) => ({
        ...{ ...snapshot, id, name: text, owner_user_id: userId, box_id: box.id, source_hostname: text },
        ...{ error: text, description: text, created_at: NOW },
        ...(index % 2 === 0
          ? { status: 'failed' as const }
          : { status: 'available' as const, template_name: text }),
      })),
    )
    .execute()
  await db
    .insertInto('enrollments')
    .values(
      named.map(({ text, id }) => ({
        ...{ ...enrollment, id, hash: id, name: text, expires_at: NOW + 3_600_000 },
        ...{ user_id: userId, used_at: null, agent_token_hash: null, box_id: null },
      })),
    )
    .execute()
  await db
    .insertInto('box_events')
    .values(
      named.slice(-40).map(({ text }) => ({
        ...{ box_id: box.id, from_state: null, to_state: 'running' as const, reason: text },
        ...{ actor: text, at: NOW },
      })),
    )
    .execute()
  await db.updateTable('users').set({ name: COMBINED }).where('id', '=', userId).execute()
  await db.updateTable('workspaces').set({ name: COMBINED }).where('id', '=', workspaceId).execute()
}

/** What the box reports with its heartbeats and samples. */
async function routeReports(page: Page): Promise<void> {
  await page.route(/\/api\/v1\/boxes\/[\w-]+$/, async (route) => {
    const response = await route.fetch()
    const detail: BoxDetail = await response.json()
    const vitals = { cpu_pct: 1, mem_pct: 1, disk_pct: 1, idle_for_sec: 1, listeners_count: 1 }
    const job = { op: 'wake', step: COMBINED, attempt: 1, lastError: COMBINED, nextRetryAt: null }
    const environment = { id: 'env', name: COMBINED, versionNo: 1, latestVersionNo: 1 }
    const box = { ...detail.box, image: COMBINED }
    const envVars = ALL_HOSTILE_TEXTS.map((name) => ({ name, value: name }))
    await route.fulfill({
      response,
      json: { ...detail, box, job, environment, envVars, vitals: { ...vitals, agent_version: COMBINED } },
    })
  })
  await page.route('**/port-shares', async (route) => {
    const response = await route.fetch()
    const ports = ALL_HOSTILE_TEXTS.map((process, index) => ({ port: index + 1, process, pid: 1 }))
    const share = { id: 'shr_1', port: 1, access: 'members', expiresAt: null, createdAt: AT, openCount: 0 }
    const links = { url: 'javascript:window.hostileScriptRan=1', origin: COMBINED, createdBy: COMBINED }
    const json = {
      ...(await response.json()),
      listening: { at: AT, ports },
      shares: [{ ...share, ...links, lastOpenedAt: null, rewriteHost: false, slug: COMBINED }],
    }
    await route.fulfill({ response, json })
  })
  await page.route('**/procs-at?*', (route) => {
    const procs = ALL_HOSTILE_TEXTS.map((text, index) => ({
      ...{ pid: index + 1, ppid: 0, user: text, name: text, command: text, startedAt: AT },
      ...{ cpuPct: 0, memBytes: 1 },
    }))
    const ports = ALL_HOSTILE_TEXTS.map((process, index) => ({ port: index + 1, process, pid: 1 }))
    return route.fulfill({ json: { at: AT, procs, ports, total: procs.length } })
  })
}

/** AWS roles with errors and names that have the tricks. The API refuses such names. */
async function routeAwsRoles(page: Page): Promise<void> {
  await page.route('**/api/v1/aws-roles', async (route) => {
    const response = await route.fetch()
    const roles = ALL_HOSTILE_TEXTS.map((text, index) => ({
      ...{ id: `${index}`, profile: text, roleArn: text, createdAt: AT, createdBy: `key:${text}` },
      ...(index % 2 === 0
        ? { verifiedAt: null, verifiedArn: null, verifyError: text }
        : { verifiedAt: AT, verifiedArn: text, verifyError: null }),
    }))
    const facts = { issuer: COMBINED, audience: COMBINED, subjectPattern: COMBINED, missing: [COMBINED] }
    await route.fulfill({ response, json: { ...(await response.json()), ...facts, roles } })
  })
}

/** Billing with names and notes that have the tricks. */
async function routeBilling(page: Page): Promise<void> {
  await page.route('**/api/v1/session', async (route) => {
    const response = await route.fetch()
    await route.fulfill({ response, json: { ...(await response.json()), billing: 'manual' } })
  })
  const amounts = { micros: 1, computeSeconds: 1 }
  const month = AT.slice(0, 7)
  await page.route('**/api/v1/usage?*', (route) => {
    const by = new URL(route.request().url()).searchParams.get('by')
    const rows = ALL_HOSTILE_TEXTS.map((text, index) => ({
      ...amounts,
      ...(by === 'day' && { day: `${month}-01`, parts: [{ id: `${index}`, micros: 1 }] }),
      ...(by === 'box' && { boxId: `${index}`, hostname: text }),
      ...(by === 'member' && { userId: `${index}`, name: text, email: text }),
    }))
    return route.fulfill({ json: { by, month, totalMicros: rows.length, rows } })
  })
  await page.route('**/api/v1/billing/entries', (route) => {
    const entry = { kind: 'usage', amountMicros: -1, boxId: COMBINED, since: AT, until: AT, at: AT }
    const entries = ALL_HOSTILE_TEXTS.map((note, index) => ({ ...entry, id: `${index}`, note }))
    return route.fulfill({ json: { entries, nextBefore: COMBINED } })
  })
}

/** Secrets, their grants, mounts and usage with names that have the tricks. */
async function routeSecrets(page: Page): Promise<void> {
  const secrets = ALL_HOSTILE_TEXTS.map((text, index) => ({
    ...{
      id: `${index}`,
      name: text,
      description: text,
      hosts: [text],
      in: [text],
      placeholder: text,
      mountCount: 1,
    },
    ...{ scope: 'granted', createdAt: AT, updatedAt: AT, lastRotatedAt: AT },
    grants: ALL_HOSTILE_TEXTS.map((hostname, grant) => ({
      ...{ id: `${grant}`, boxId: 'box', hostname, userId: null, email: null, createdAt: AT },
    })),
  }))
  await page.route('**/api/v1/secrets', (route) => route.fulfill({ json: { secrets } }))
  const use = { boxId: 'box', firstAt: AT, lastAt: AT, count: 1 }
  const uses = ALL_HOSTILE_TEXTS.map((text) => ({ ...use, hostname: text, host: text }))
  await page.route('**/api/v1/secrets/*/usage', (route) => route.fulfill({ json: { uses } }))
  const mounts = secrets.map((secret) => ({ id: secret.id, envName: secret.name, secret }))
  const broker = { state: 'failed', message: COMBINED, checkedAt: AT }
  await page.route('**/api/v1/boxes/*/secrets', (route) => route.fulfill({ json: { mounts, broker } }))
}

t.test('hostile texts', { skip: NO_BROWSER }, async (t) => {
  const { agent, last } = createHostileAgent()
  const coordinator = await startBoxWithFakeAgent(t, async (request) =>
    agent.handler(request).catch(() => respondError(new ApiError('not_found', COMBINED.slice(0, 1000)))),
  )
  const { box, url, dataDir, infra, api } = coordinator
  infra.tunnels.on('disconnected', agent.disconnect)
  // A name that the API allows, and that objects have.
  await api('PATCH', `/boxes/${box.id}`, { name: 'constructor' })
  const context = await (await startBrowser(t)).newContext({
    permissions: ['clipboard-read', 'clipboard-write'],
    userAgent: `Chrome ${HOSTILE_TEXTS['an event handler']} ${HOSTILE_TEXTS.templates}`,
  })
  const page = await context.newPage()
  const attacks = await watchForAttacks(page, url)
  await page.goto(`${url}/boxes/constructor`)
  await signIn(page, dataDir)
  await page.getByRole('heading', { level: 2, name: 'Events' }).waitFor()
  const problems = collectProblems(page)
  await fillDatabase(coordinator)
  await routeReports(page)
  await routeBilling(page)
  await routeAwsRoles(page)
  await routeSecrets(page)
  await page.evaluate("navigator.clipboard.writeText('own text')")

  const pasteDir = join(createTempDir(t, 'paste'), 'empty')
  mkdirSync(pasteDir)
  const pasted = new Set<string>()
  /** The commands of the page: those that it shows, and those behind its buttons, which an open dialog makes inert. */
  async function readCommands(): Promise<string[]> {
    const commands = page.locator('.command code')
    const shown = await commands.allTextContents()
    if ((await page.getByRole('dialog').count()) > 0) return shown
    const buttons = await page.locator('.commands-button:visible').all()
    for (const button of buttons) {
      await button.click()
      await page.locator('.popover').filter({ has: commands }).waitFor()
      shown.push(...(await page.locator('.popover code').allTextContents()))
      await page.keyboard.press('Escape')
      await page.locator('.popover code').first().waitFor({ state: 'detached' })
    }
    return shown
  }
  /** Pastes the commands of the page that were not pasted before. */
  async function checkCommands(t: Test, name: string): Promise<void> {
    const shown = await readCommands()
    const commands = shown.filter((text) => !pasted.has(text))
    for (const text of commands) pasted.add(text)
    for (const calls of await pasteCommands(commands, pasteDir))
      t.equal(calls.length, commands.length, `${name}: each command is one call`)
    t.same(readdirSync(pasteDir), [], `${name}: a command runs nothing else`)
  }
  async function check(t: Test, name: string, shown: readonly string[] = []): Promise<void> {
    t.same(await inspectPage(page), [], name)
    const text = await page.evaluate<string>('document.body.textContent')
    const missing = shown.filter((expected) => !text.includes(expected))
    t.same(missing, [], `${name}: the texts are visible`)
    t.same(attacks.splice(0), [], name)
    await checkCommands(t, name)
  }
  const all = ALL_HOSTILE_TEXTS.map((text) => toVisible(text))
  const open = (path: string) => page.goto(`${url}/${path}`)

  await t.test('the API refuses the tricks as names of boxes', async (t) => {
    for (const [trick, name] of Object.entries(HOSTILE_TEXTS)) {
      const { status } = await api('PATCH', `/boxes/${box.id}`, { name })
      t.equal(status, name === 'constructor' ? 200 : 400, trick)
    }
  })

  const PAGES: [path: string, ready: string, shown: readonly string[]][] = [
    ['', 'Suspend', []],
    ['boxes/constructor', 'Unmount', [toVisible(COMBINED), ...all]],
    ['boxes/constructor/timeline', 'Timeline', []],
    ['boxes/constructor/terminals', 's0', all.slice(-LIMITS.terminalSessions)],
    ['boxes/constructor/commands', 'Duration', all.filter((text) => text.length < 200)],
    ['boxes/constructor/conversations', 'of at most 4 runs', []],
    ['boxes/constructor/files', 'entries', all],
    ['boxes/constructor/processes', 'Kill', []],
    ['workspace/snapshots', 'failed', all],
    ['workspace/secrets', 'Rotated', all],
    ['workspace/machines', 'Revoke', all],
    ['workspace/aws', 'As of', [toVisible(COMBINED), ...all]],
    ['workspace/keys', 'As of', all],
    ['workspace/members', 'As of', all],
    ['workspace/policies', 'Links without a sign-in', []],
    ['workspace/audit', 'As of', []],
    ['workspace/billing', 'so far in', all],
    ['workspace/billing?by=member', 'so far in', all],
    ['workspace/sessions', 'this session', [HOSTILE_TEXTS['an event handler'] ?? '']],
    ['workspace/settings', 'Zero data retention', [toVisible(COMBINED)]],
  ]
  for (const [path, ready, shown] of PAGES)
    await t.test(`/${path}`, async (t) => {
      await open(path)
      await page.getByText(ready).first().waitFor()
      await check(t, path, shown)
    })

  await t.test('the grants and the usage of a secret', async (t) => {
    await open('workspace/secrets')
    await page
      .getByRole('button', { name: /^Grants and usage/ })
      .first()
      .click()
    await page.getByRole('heading', { name: 'Usage' }).waitFor()
    await page.getByRole('columnheader', { name: 'Requests' }).waitFor()
    await check(t, 'grants and usage', all)
  })

  await t.test('the output of a command', async (t) => {
    await open(`boxes/constructor/commands?command=${COMMAND_ID}`)
    await page.getByText('WWWW').first().waitFor()
    const lines = MARKDOWN.replaceAll('\u001b[8m', '')
      .replaceAll('\u001b[0m', '')
      .split(/\r?\n|\r/)
    await check(
      t,
      'output',
      lines.map((line) => toVisible(line)),
    )
  })

  await t.test('an answer with its reasoning, tools and diffs', async (t) => {
    await open(`boxes/constructor/conversations?conversation=${last.run.conversationId}`)
    await page.getByText('Reasoning').waitFor()
    await page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true })")
    const inOneLine = ALL_HOSTILE_TEXTS.filter((text) => !text.includes('\n')).map((text) => toVisible(text))
    await page.locator('.diff').last().waitFor()
    await check(t, 'answer', inOneLine)
    const links = await page
      .locator('.markdown a')
      .evaluateAll((found) => found.map((link) => link.textContent))
    t.ok(links.length > 0)
    for (const link of links)
      t.match(link, /^http:\/\/attacker\.invalid\/[!-~]*$/, 'the address is shown in full')
  })

  await t.test('the content of a file', async (t) => {
    await open(`boxes/constructor/files?${new URLSearchParams({ path: '/tmp', file: 'a' })}`)
    await page.locator('section.content pre').waitFor()
    await check(t, 'file', [toVisible(MARKDOWN, '\n\t')])
  })

  await t.test('the timeline, and the processes of a moment', async (t) => {
    await open(`boxes/constructor/timeline?at=${AT}`)
    await page.getByRole('heading', { name: 'Listening ports' }).waitFor()
    await page.locator('.items > li').nth(40).waitFor()
    await page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true })")
    await check(t, 'timeline', all.slice(0, 20))
  })

  await t.test('the form of a box, and the command palette', async (t) => {
    await open('?create=')
    const option = page.locator('option', { hasText: '__proto__' })
    await option.first().waitFor({ state: 'attached' })
    await check(t, 'create a box', all.slice(0, 10))
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.keyboard.press('Control+k')
    await page
      .getByRole('option', { name: /^constructor/ })
      .first()
      .waitFor()
    await check(t, 'palette')
  })

  await t.test('a link to a page with a hostile URL', async (t) => {
    const text = encodeURIComponent(COMBINED)
    async function paste(start: string): Promise<string[][]> {
      const [text = ''] = (await readCommands()).filter((command) => command.startsWith(start))
      return pasteCommand(text, pasteDir)
    }
    await open(`boxes/${text}`)
    await page.getByText('There is no box with this name').waitFor()
    await check(t, 'an unknown box', [toVisible(COMBINED)])
    t.equal(await page.title(), `${toVisible(COMBINED)} · Boxwood`)
    await open(`boxes/constructor/conversations?conversation=${text}`)
    await check(t, 'an unknown conversation')
    for (const words of await paste('box prompts'))
      t.same(words, ['prompts', 'constructor', '--conversation', COMBINED])
    await open(`boxes/constructor/files?path=/tmp&file=${text}`)
    await page.locator('section.content pre').waitFor()
    await check(t, 'a path')
    for (const words of await paste('box cp')) t.same(words, ['cp', `constructor:/tmp/${COMBINED}`, '.'])
    await open(`boxes/constructor/commands?command=${text}`)
    await page.locator('.problem').first().waitFor()
    await check(t, 'an unknown command')
    await open(`boxes/constructor/terminals?session=${text}`)
    await page.locator('.problem').first().waitFor()
    await check(t, 'an unknown session')
    for (const words of await paste('box attach')) t.same(words, ['attach', 'constructor', COMBINED])
    t.ok(problems.splice(0).every((problem) => /status of 40[04]|WebSocket/.test(problem)))
  })

  await t.test('a command of a dialog has the name as one argument', async (t) => {
    const tricks = Object.entries(HOSTILE_TEXTS).filter(([trick]) => /shell|hidden|lines|option/.test(trick))
    t.ok(tricks.length > 6)
    async function checkDialog(label: string, expected: string[]): Promise<void> {
      await page.locator(`main button[aria-label=${JSON.stringify(label)}]`).click()
      const dialog = page.getByRole('dialog')
      const text = (await dialog.locator('.command code').textContent()) ?? ''
      for (const words of await pasteCommand(text, pasteDir)) t.same(words, expected)
      t.same(await inspectPage(page), [], label)
      await page.keyboard.press('Escape')
      await dialog.waitFor({ state: 'detached' })
    }
    await open('workspace/keys')
    await page.getByText('As of').waitFor()
    for (const [, text] of tricks) await checkDialog(`Rotate ${toVisible(text)}`, ['keys', 'rotate', text])
    await open('workspace/aws')
    await page.getByText('As of').waitFor()
    for (const [, text] of tricks)
      await checkDialog(`Disconnect ${toVisible(text)}`, ['aws', 'disconnect', text])
    await open('boxes/constructor/files')
    await page.getByText('entries', { exact: false }).first().waitFor()
    const directory = `/${HOSTILE_TEXTS.SVG}/\u202e`
    for (const [, text] of tricks.filter(([, name]) => !name.includes('\n')))
      await checkDialog(`Delete ${toVisible(text)}`, [
        ...['files', 'rm', 'constructor', `${directory}/${text}`],
      ])
    t.same(readdirSync(pasteDir), [])
  })

  await t.test('a terminal executes and answers nothing', async (t) => {
    const input: string[] = []
    const sequences = Buffer.from(Object.values(TERMINAL_SEQUENCES).join('\r\n'))
    const link = '\u001b]8;;http://attacker.invalid/\u0007https://example.com/\u001b]8;;\u0007'
    const output = Buffer.from(`${sequences}\r\n${link}\r\nend of the output\r\n`)
    const position = { stdoutOffset: 0, stderrOffset: 0 }
    let socket: WebSocketRoute | undefined
    await page.routeWebSocket(/\/terminal\?/, (route) => {
      socket = route
      route.onMessage((message) => {
        if (typeof message !== 'string') input.push(message.toString('latin1'))
      })
      const send = (message: object) => route.send(JSON.stringify(message))
      send({ type: 'attached', session: 's0', stdinOffset: 0, ...position })
      const { searchParams } = new URL(route.url())
      const [cols, rows] = ['cols', 'rows'].map((name) => Number(searchParams.get(name)))
      send({ type: 'screen', bytes: sequences.length, ...position, cols, rows })
      route.send(encodeChunk('stdout', sequences))
      route.send(encodeChunk('stdout', output))
    })
    await page.setViewportSize({ width: 1280, height: 1600 })
    await open('boxes/constructor/terminals?session=s0')
    const rows = page.locator('.xterm-rows')
    await rows.getByText('end of the output').waitFor()
    await check(t, 'terminal')
    t.equal(await page.title(), 'constructor · Terminals · Boxwood')
    t.equal(await page.evaluate('navigator.clipboard.readText()'), 'own text')

    async function click(text: string): Promise<void> {
      await rows.getByText(text).last().hover({ force: true })
      await page.mouse.down()
      await page.mouse.up()
    }
    await click('script link')
    await click('https://example.com/')
    const question = page.getByRole('dialog', { name: 'Open this link?' })
    await question.waitFor()
    t.equal(await page.getByRole('dialog').count(), 1, 'the script is no link')
    t.equal(await question.locator('code').textContent(), 'http://attacker.invalid/')
    await check(t, 'question')
    await page.keyboard.press('Escape')
    await question.waitFor({ state: 'detached' })
    t.same(input, [], 'the terminal has sent no answer')
    t.not(await page.evaluate('navigator.clipboard.readText()'), HOSTILE_CLIPBOARD)
    const signal = HOSTILE_TEXTS['a bidirectional override']
    const end = { ...position, stdoutOffset: output.length }
    const exit = { type: 'exit', status: 'killed', exitCode: null, signal, timedOut: false, ...end }
    socket?.send(JSON.stringify(exit))
    await page.getByText('The session was killed').waitFor()
    await check(t, 'exit', [toVisible(String(signal))])
  })

  t.same(problems, [], 'no violation of the policy and no error')
})
