// Moves the focus to the heading of the page, after a navigation and when the focused element was removed.

export const focusHeading = (): void => document.querySelector<HTMLElement>('main h1')?.focus()
