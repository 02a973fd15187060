// The pages in a real browser.
import type { Page } from 'playwright-core'
import t from 'tap'
import { NO_BROWSER, startBrowser } from '../support/browser.ts'
import { startTestCoordinator } from '../support/coordinator.ts'

/** Records what a user would see in the developer tools: requests, errors of scripts, and violations of the policy. */
function observe(page: Page) {
  const hosts = new Set<string>()
  const problems: string[] = []
  page.on('request', (request) => {
    const { protocol, host } = new URL(request.url())
    if (protocol !== 'data:') hosts.add(host)
  })
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') problems.push(message.text())
  })
  page.on('pageerror', (error) => problems.push(error.message))
  return { hosts, problems }
}

const listOperations = (page: Page): Promise<string[]> =>
  page
    .locator('.opblock-summary')
    .evaluateAll((summaries) =>
      summaries.map((summary) =>
        ['.opblock-summary-method', '.opblock-summary-path']
          .map((selector) => summary.querySelector(selector)?.textContent?.replaceAll('\u200b', ''))
          .join(' '),
      ),
    )

t.test('a browser shows the first page and the API reference', { skip: NO_BROWSER }, async (t) => {
  // The API reference works at another address than the public URL.
  const { url, send, key } = await startTestCoordinator(t, {
    env: { BOXWOOD_PUBLIC_URL: 'https://boxes.example.com' },
  })
  const { host } = new URL(url)
  const page = await (await startBrowser(t)).newPage()
  const { hosts, problems } = observe(page)

  await page.goto(url)
  t.equal(await page.title(), 'Boxwood')
  await page.getByRole('link', { name: 'API reference' }).click()
  await page.locator('.opblock-tag').first().waitFor()
  t.same(await page.locator('.servers option').allTextContents(), [url])
  t.notMatch(await page.content(), key)

  const { paths, webhooks = {} } = (await send('GET', '/openapi.json')).json
  const documented = Object.entries<object>({ ...paths, ...webhooks }).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
  )
  const shown = new Set(await listOperations(page))
  const groups = page.locator('.opblock-tag')
  for (const group of await groups.all()) {
    await group.click()
    await page.locator('.opblock-tag-section.is-open .opblock').first().waitFor()
    for (const operation of await listOperations(page)) shown.add(operation)
    await group.click()
    await page.locator('.opblock-tag-section.is-open').waitFor({ state: 'detached' })
  }
  t.same([...shown].sort(), documented.sort(), 'every route is shown')
  const tags = (await groups.allTextContents()).join(' ')
  for (const tag of ['Sign-in', 'Account', 'Boxes', 'Command history']) t.match(tags, tag)

  await page.locator('.btn.authorize').click()
  const apiKeyForm = page.locator('.auth-container form', { hasText: 'apiKey (http, Bearer)' })
  await apiKeyForm.locator('input').fill(key)
  await apiKeyForm.locator('button[type=submit]').click()
  await apiKeyForm.locator('.btn-done').click()
  await groups.filter({ hasText: 'Account' }).click()
  const route = page.locator('.opblock', { hasText: 'Get the account' })
  await route.locator('.opblock-summary-control').click()
  await route.getByRole('button', { name: 'Try it out' }).click()
  await route.getByRole('button', { name: 'Execute' }).click()
  await route.locator('.live-responses-table').waitFor()
  t.match(
    await route.locator('.live-responses-table').textContent(),
    /200[\s\S]*"workspace"/,
    'a request succeeds',
  )

  t.same([...hosts], [host], 'no request to another host')
  t.same(problems, [])
})
