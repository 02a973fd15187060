// What the user has typed and not sent. A page with such a text is not replaced by another one.

const checks = new Set<() => boolean>()

/** Adds a check for what is not in the document, such as the unsaved text of a page that is not shown. */
export const addUnsentCheck = (hasText: () => boolean): void => void checks.add(hasText)

/** Whether a dialog is open, or a field of a form has a text. The fields that select what a page shows are no texts. */
export const hasUnsent = (): boolean =>
  document.querySelector('dialog[open]') !== null ||
  [...document.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>('form input, form textarea')].some(
    isTyped,
  ) ||
  [...checks].some((hasText) => hasText())

const isTyped = ({ type, value, defaultValue }: HTMLInputElement | HTMLTextAreaElement): boolean =>
  (type === 'text' || type === 'textarea') && value !== defaultValue
