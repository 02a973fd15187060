// Uses a page with the keyboard only, and checks that the focus is never lost.
import type { Locator, Page } from 'playwright-core'
import type { Test } from 'tap'

/** More than the elements of a page in these tests that can have the focus. */
const MAX_TABS = 150

export type Keyboard = {
  /** Presses Tab until the element has the focus. */
  tabTo(target: Locator): Promise<void>
  /** Moves the focus to the element, and presses the key. */
  press(target: Locator, key?: string): Promise<void>
  /** Moves the focus to the input, and replaces its text. */
  type(target: Locator, text: string): Promise<void>
  /** Waits for the effect of an action or of a live change. Then an element of the page must have the focus. */
  expect(effect: Locator, state?: 'visible' | 'detached'): Promise<void>
}

export function createKeyboard(t: Test, page: Page): Keyboard {
  async function tabTo(target: Locator): Promise<void> {
    await target.waitFor()
    for (let count = 0; count < MAX_TABS; count++) {
      if (await target.evaluate((element) => element === element.ownerDocument.activeElement)) return
      await page.keyboard.press('Tab')
    }
    throw new Error(`Tab does not move the focus to ${target}`)
  }
  return {
    tabTo,
    async press(target, key = 'Enter') {
      await tabTo(target)
      await page.keyboard.press(key)
    },
    async type(target, text) {
      await tabTo(target)
      await page.keyboard.press('Control+a')
      await page.keyboard.type(text)
    },
    async expect(effect, state = 'visible') {
      await effect.first().waitFor({ state })
      // A disabled element loses the focus with the next frame.
      await page.evaluate(
        'new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve))))',
      )
      t.not(await page.evaluate('document.activeElement.tagName'), 'BODY', `the focus is not lost: ${effect}`)
    },
  }
}
