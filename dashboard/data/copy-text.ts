// Copies a text. Plain HTTP from another machine has no clipboard.

/** @returns whether the browser has allowed it */
export const copyText = (text: string): Promise<boolean> =>
  (navigator.clipboard?.writeText(text) ?? Promise.reject()).then(
    () => true,
    () => false,
  )
