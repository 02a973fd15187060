// The names of fields in the messages of the API, as a form labels them.

/** shared/validation-message.ts writes the field and its rule: `hosts[0] must be a string`, or `hosts[0] "a b" must be …`. */
const START = /^([a-zA-Z]+)(?:\[(\d+)\])? (?="|must |is |does )/

/** @param fields of the form */
export function nameField(message: string, fields: readonly { name: string; label: string }[]): string {
  const [start, name, index] = START.exec(message) ?? []
  const field = fields.find((other) => other.name === name)
  if (start === undefined || field === undefined) return message
  const line = index === undefined ? '' : `, line ${Number(index) + 1},`
  return `${field.label}${line} ${message.slice(start.length)}`
}
