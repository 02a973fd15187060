// Shows the OpenAPI document with Swagger UI. Runs in the browser, on the page /docs.
const page = new URL('.', location.href)
const element = document.querySelector('#reference')

try {
  const response = await fetch('openapi.json')
  if (!response.ok) throw new Error(`the coordinator responded with status ${response.status}`)
  const spec = await response.json()
  // The address at which this browser reaches the coordinator: the policy of the page forbids requests to others.
  spec.servers = [{ url: page.href.replace(/\/$/, '') }]
  window.SwaggerUIBundle({
    spec,
    domNode: element,
    deepLinking: true,
    // With more than 128 operations, Swagger UI does not complete a page on which all groups are open.
    docExpansion: 'none',
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    validatorUrl: null,
  })
} catch (error) {
  element.textContent = `The API reference cannot be shown: ${error.message}. Reload the page.`
}
