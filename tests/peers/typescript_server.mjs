// A server written with the TypeScript SDK 2.x, for both eras: `node typescript_server.mjs MODULES stdio | http`.
// Over HTTP it prints its port.
import { createServer } from "node:http";
import { Readable } from "node:stream";

const [modules, transport] = process.argv.slice(2);
const sdk = await import(`${modules}/@modelcontextprotocol/server/dist/index.mjs`);
const { serveStdio } = await import(`${modules}/@modelcontextprotocol/server/dist/stdio.mjs`);
const z = await import(`${modules}/zod/v4/index.js`);

const text = (text) => ({ content: [{ type: "text", text }] });
const Name = z.object({ name: z.string() });
let changed = () => {};
const grown = [];

function make() {
  const server = new sdk.McpServer({ name: "typescript-2", version: "1" }, { capabilities: { tools: { listChanged: true } } });
  const add = { description: "Adds.", inputSchema: z.object({ a: z.number(), b: z.number() }) };
  server.registerTool("add", add, async ({ a, b }) => text(`${a + b}`));
  server.registerTool("fail", { description: "Fails." }, async () => {
    throw new Error("no luck");
  });
  server.registerTool("ask", { description: "Asks the user's name." }, async (ctx) => {
    const answer = sdk.acceptedContent(ctx.mcpReq.inputResponses, "name", Name);
    if (answer) return text(`accept: ${answer.name}`);
    const question = sdk.inputRequired.elicit({ message: "What is your name?", requestedSchema: Name });
    return sdk.inputRequired({ inputRequests: { name: question } });
  });
  server.registerTool("grow", { description: "Offers one more tool." }, async () => {
    grown.push("grown");
    changed(server);
    return text("grown");
  });
  for (const name of grown) register(server, name);
  return server;
}

function register(server, name) {
  server.registerTool(name, { description: "Was not there before." }, async () => text("new"));
}

if (transport === "stdio") {
  changed = (server) => register(server, "grown");
  serveStdio(make);
} else {
  const handler = sdk.createMcpHandler(make);
  changed = () => handler.notify.toolsChanged();
  const http = createServer(async (request, response) => {
    const body = ["GET", "HEAD", "DELETE"].includes(request.method) ? undefined : Readable.toWeb(request);
    const url = `http://${request.headers.host}${request.url}`;
    const { method, headers } = request;
    const answer = await handler.fetch(new Request(url, { method, headers, body, duplex: "half" }));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.flushHeaders();
    if (answer.body) Readable.fromWeb(answer.body).pipe(response);
    else response.end();
  });
  http.listen(0, "127.0.0.1", () => console.log(http.address().port));
}
