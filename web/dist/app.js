// vendor/preact/dist/preact.mjs
var n;
var t;
var r;
var u;
var i;
var f;
var o;
var e;
var l;
var c;
var a;
var s;
var h = /* @__PURE__ */ Symbol.for("pv");
var p = {};
var y = [];
var v = /^m(i|n|o|s|text|space)$/;
var w = Array.isArray;
var d = y.slice;
var _ = Object.assign;
function g(n3) {
  n3 && n3.parentNode && n3.remove();
}
function k(n3, t4, r4) {
  var u4, i4, f5, o5 = {}, e4 = arguments.length;
  for (f5 in t4) "key" == f5 ? u4 = t4[f5] : "ref" == f5 && "function" != typeof n3 ? i4 = t4[f5] : o5[f5] = t4[f5];
  return e4 > 2 && (o5.children = e4 > 3 ? d.call(arguments, 2) : r4), m(n3, o5, u4, i4, null);
}
function m(r4, u4, i4, f5, o5) {
  var e4 = { type: r4, props: u4, key: i4, ref: f5, __k: null, __: null, __b: 0, __e: null, __c: null, constructor: h, __v: o5 || ++t, __i: -1, __u: 0 };
  return !o5 && n.vnode && n.vnode(e4), e4;
}
function $(n3) {
  return n3.children;
}
function x(n3, t4) {
  this.props = n3, this.context = t4, this.__g = 0;
}
function S(n3, t4) {
  if (null == t4) return n3.__ && S(n3.__, n3.__i + 1);
  for (var r4; t4 < n3.__k.length; t4++) if ((r4 = n3.__k[t4]) && r4.__e) return r4.__e;
  return "function" != typeof n3.type || n3.props.__P ? null : S(n3);
}
function C(t4) {
  var r4, u4 = t4.__v, i4 = u4.__e, f5 = [], o5 = [], e4 = t4.__P;
  e4 && ((r4 = _({ constructor: h }, u4)).__v = u4.__v + 1, n.vnode && n.vnode(r4), z(e4, r4, u4, t4.__n, e4.namespaceURI, 32 & u4.__u ? [i4] : null, f5, i4 || S(u4), 32 & u4.__u, o5), r4.__v = u4.__v, r4.__.__k[r4.__i] = r4, E(f5, r4, o5), u4.__ = u4.__e = null, r4.__e != i4 && j(r4));
}
function j(n3) {
  if ((n3 = n3.__) && n3.__c && !n3.props.__P) return n3.__e = null, n3.__k.some(function(t4) {
    return t4 && (n3.__e = t4.__e);
  }), j(n3);
}
function L(t4) {
  (8 & t4.__g || (t4.__g |= 8, u.push(t4), f++)) && i == n.debounceRendering || ((i = n.debounceRendering) || queueMicrotask)(H);
}
function H() {
  try {
    for (var n3, t4 = 1; u.length; ) u.length > t4 && u.sort(o), n3 = u.shift(), t4 = u.length, 8 & n3.__g && C(n3);
  } finally {
    (f = u.length) && (i || queueMicrotask)(H);
  }
}
function I(n3, t4, r4, u4, i4, f5, o5, e4, l4, c4, a5) {
  var s4, h5, v4, w5, d4, _3, g5 = u4.__k || y, k4 = t4.length;
  for (l4 = q(r4, t4, g5, l4, k4), s4 = 0; s4 < k4; s4++) null != (v4 = r4.__k[s4]) && (h5 = ~v4.__i && g5[v4.__i] || p, v4.__i = s4, _3 = z(n3, v4, h5, i4, f5, o5, e4, l4, c4, a5), w5 = v4.__e, (h5.ref != v4.ref || 8 & h5.__u) && (h5.ref && G(h5.ref, null, v4, h5), v4.ref && a5.push(v4.ref, v4.__c || w5, v4)), d4 = d4 || w5, 4 & v4.__u ? (l4 = A(v4, l4, n3, !h5.__v), h5.__e && (h5.__e = null)) : "function" == typeof v4.type && void 0 !== _3 ? l4 = _3 : w5 && (l4 = w5.nextSibling), v4.__u &= -21);
  return r4.__e = d4, l4;
}
function q(n3, t4, r4, u4, i4) {
  var f5, o5, e4, l4, c4, a5, s4, p5, y5, v4 = r4.length, d4 = v4, _3 = 0, g5 = 0, k4 = n3.__k = Array(i4);
  for (f5 = 0; f5 < i4; f5++) null != (o5 = t4[f5]) && "boolean" != typeof o5 && "function" != typeof o5 ? ("object" != typeof o5 || o5.constructor === String ? o5 = k4[f5] = m(null, o5) : w(o5) ? o5 = k4[f5] = m($, { children: o5 }) : o5.constructor === h && o5.__b ? o5 = k4[f5] = m(o5.type, o5.props, o5.key, o5.ref, o5.__v) : k4[f5] = o5, l4 = f5 + _3, o5.__ = n3, o5.__b = n3.__b + 1, e4 = null, ~(c4 = o5.__i = P(o5, r4, l4, d4)) && (d4--, (e4 = r4[c4]) && (e4.__u |= 2)), e4 && e4.__v ? (o5.__u |= 16, c4 == l4 - 1 ? _3-- : c4 == l4 + 1 ? _3++ : c4 != l4 && (c4 > l4 ? _3-- : _3++, g5 = 1)) : (~c4 || (i4 > v4 ? _3-- : i4 < v4 && _3++), "function" != typeof o5.type && (o5.__u |= 4))) : k4[f5] = null;
  if (g5) {
    for (a5 = [], s4 = [], f5 = 0; f5 < i4; f5++) if ((o5 = k4[f5]) && 16 & o5.__u) {
      for (_3 = 0, p5 = a5.length; _3 < p5; ) a5[y5 = _3 + p5 >> 1] < o5.__i ? _3 = y5 + 1 : p5 = y5;
      a5[_3] = o5.__i, s4[f5] = _3 + 1;
    }
    for (_3 = a5.length; f5--; ) s4[f5] && (s4[f5] == _3 ? _3-- : k4[f5].__u |= 4);
  }
  if (d4) for (f5 = 0; f5 < v4; f5++) !(e4 = r4[f5]) || 2 & e4.__u || (e4.__e == u4 && (u4 = S(e4)), J(e4, e4));
  return u4;
}
function A(n3, t4, r4, u4) {
  var i4, f5, o5, e4;
  if ("function" == typeof n3.type) {
    if (n3.props.__P) return t4;
    if (i4 = n3.__k) for (f5 = 0; f5 < i4.length; f5++) i4[f5] && (i4[f5].__ = n3, t4 = A(i4[f5], t4, r4, false));
    return t4;
  }
  for (t4 && !t4.parentNode && (t4 = S(n3)) && !t4.parentNode && (t4 = null), o5 = n3.__e, e4 = t4; e4 && 8 == e4.nodeType; ) e4 = e4.nextSibling;
  for (o5 != e4 && (!u4 && r4.moveBefore && o5.parentNode ? r4.moveBefore(o5, t4) : r4.insertBefore(o5, t4 || null)), t4 = o5; (t4 = t4 && t4.nextSibling) && 8 == t4.nodeType && !t4.data.startsWith("$s"); ) ;
  return t4;
}
function P(n3, t4, r4, u4) {
  var i4, f5 = n3.key, o5 = n3.type, e4 = t4[r4], l4 = e4 && !(2 & e4.__u);
  if (null === e4 && null == f5 || l4 && f5 == e4.key && o5 == e4.type) return r4;
  if (u4 > (l4 ? 1 : 0)) {
    for (i4 = r4 - 1; i4 >= 0; i4--) if ((e4 = t4[i4]) && !(2 & e4.__u) && f5 == e4.key && o5 == e4.type) return i4;
    for (i4 = r4 + 1; i4 < t4.length; i4++) if ((e4 = t4[i4]) && !(2 & e4.__u) && f5 == e4.key && o5 == e4.type) return i4;
  }
  return -1;
}
function T(n3, t4, r4) {
  null == r4 && (r4 = ""), "-" == t4[0] ? n3.setProperty(t4, r4) : n3[t4] = r4;
}
function N(n3, t4, r4, u4, i4) {
  var f5, o5;
  if ("style" == t4) if ("string" == typeof r4) n3.style.cssText = r4;
  else {
    if ("string" == typeof u4 && (n3.style.cssText = u4 = ""), u4) for (t4 in u4) r4 && t4 in r4 || T(n3.style, t4);
    if (r4) for (t4 in r4) u4 && r4[t4] == u4[t4] || T(n3.style, t4, r4[t4]);
  }
  else if ("o" == t4[0] && "n" == t4[1]) "function" != typeof r4 && (r4 = null), "function" != typeof u4 && (u4 = null), (n3.__e || (n3.__e = {}))[t4] = r4, r4 && u4 || (o5 = a[t4] || (a[t4] = V(t4)), (n3.__a || (n3.__a = {}))[t4] = c, f5 = t4 != (t4 = t4.replace(l, "$1")), (t4 = t4.slice(2))[0] < "a" && (t4 = t4.toLowerCase()), r4 ? n3.addEventListener(t4, o5, f5) : n3.removeEventListener(t4, o5, f5));
  else {
    if ("http://www.w3.org/2000/svg" == i4) t4 = t4.replace(/xlink(H|:h)/, "h").replace(/sName$/, "s");
    else if ("width" != t4 && "height" != t4 && "href" != t4 && "list" != t4 && "form" != t4 && "tabIndex" != t4 && "download" != t4 && "rowSpan" != t4 && "colSpan" != t4 && "role" != t4 && "popover" != t4 && t4 in n3) try {
      return void (n3[t4] = null == r4 ? "" : r4);
    } catch (n4) {
    }
    if ("function" == typeof r4) return;
    null == r4 || false === r4 && "-" != t4[4] ? n3.removeAttribute(t4) : n3.setAttribute(t4, "popover" == t4 && 1 == r4 ? "" : r4);
  }
}
function V(t4) {
  return function(r4) {
    var u4 = this.__e;
    if (u4) {
      if (u4 = u4[t4], null == r4[e]) r4[e] = c++;
      else if (r4[e] < this.__a[t4]) return;
      return u4(n.event ? n.event(r4) : r4);
    }
  };
}
function z(t4, r4, u4, i4, f5, o5, e4, l4, c4, a5) {
  var s4, p5, v4, d4, k4, b3, m5, M2, C3, j3, L2, H2, q2, A4, O2, P2, T4, N2, V2 = r4.type;
  if (r4.constructor !== h) return null;
  128 & u4.__u && (c4 = 32 & u4.__u, s4 = u4.__c.__z) && (r4.__u |= c4, p5 = o5 = [], 8 == s4.nodeType ? l4 = B(s4, o5) : o5.push(s4), l4 = o5[0] || l4), (s4 = n.__b) && s4(r4);
  n: if ("function" == typeof V2) {
    v4 = e4.length;
    try {
      if (M2 = r4.props, C3 = (s4 = V2.prototype) && s4.render, j3 = (s4 = V2.contextType) && i4[s4.__c], L2 = s4 ? j3 ? j3.props.value : s4.__ : i4, (d4 = u4.__c) ? (r4.__c = d4, 2 & d4.__g && (d4.__g |= 1)) : (C3 ? r4.__c = d4 = new V2(M2, L2) : (r4.__c = d4 = new x(M2, L2), d4.constructor = V2, d4.render = K), j3 && j3.sub(d4), d4.state || (d4.state = {}), d4.__n = i4, d4.__g |= 8, d4.__h = [], d4.__k = []), C3 && (d4.__s || (d4.__s = d4.state), V2.getDerivedStateFromProps && (d4.__s == d4.state && (d4.__s = _({}, d4.__s)), _(d4.__s, V2.getDerivedStateFromProps(M2, d4.__s)))), k4 = d4.props, b3 = d4.state, d4.__v = r4, u4.__c) {
        if (M2 !== k4 && C3 && !V2.getDerivedStateFromProps && d4.componentWillReceiveProps && d4.componentWillReceiveProps(M2, L2), r4.__v == u4.__v && !(8 & d4.__g) || !(4 & d4.__g) && d4.shouldComponentUpdate && false === d4.shouldComponentUpdate(M2, d4.__s, L2)) {
          r4.__v != u4.__v && (d4.props = M2, d4.state = d4.__s, d4.__g &= -9), r4.__e = u4.__e, r4.__k = u4.__k, r4.__k.some(function(n3) {
            n3 && (n3.__ = r4);
          }), y.push.apply(d4.__h, d4.__k), d4.__k = [], d4.__h.length && e4.push(d4), l4 = S(u4);
          break n;
        }
        d4.componentWillUpdate && d4.componentWillUpdate(M2, d4.__s, L2), C3 && d4.componentDidUpdate && d4.__h.push(function() {
          d4.componentDidUpdate(k4, b3, m5);
        });
      } else C3 && !V2.getDerivedStateFromProps && d4.componentWillMount && d4.componentWillMount(), C3 && d4.componentDidMount && d4.__h.push(d4.componentDidMount);
      d4.context = L2, d4.props = M2, d4.__P = t4, d4.__g &= -5, H2 = n.__r, q2 = C3 ? 25 : 0;
      do {
        d4.__g &= -9, H2 && H2(r4), s4 = d4.render(d4.props, d4.state = d4.__s, d4.context);
      } while (8 & d4.__g && ++q2 < 25);
      C3 && (y.push.apply(d4.__h, d4.__k), d4.__k = []), d4.state = d4.__s, d4.getChildContext && (i4 = _({}, i4, d4.getChildContext())), C3 && u4.__c && d4.getSnapshotBeforeUpdate && (m5 = d4.getSnapshotBeforeUpdate(k4, b3)), A4 = s4 && s4.type === $ && null == s4.key ? s4.props.children : s4, M2.__P && (s4 = l4, f5 = (t4 = M2.__P).namespaceURI, c4 = o5 = null, u4.props && u4.props.__P != t4 && (u4.__k.some(function(n3) {
        n3 && J(n3, n3);
      }), u4.__k = null), l4 = u4.__k ? S(u4, 0) : null), l4 = I(t4, w(A4) ? A4 : [A4], r4, u4, i4, f5, o5, e4, l4, c4, a5), M2.__P && (r4.__e = null, l4 = s4), r4.__u &= -161, p5 && p5.some(g), d4.__h.length && e4.push(d4), 1 & d4.__g && (d4.__g &= -4);
    } catch (t5) {
      if (e4.length = v4, r4.__v = null, c4 || o5) if (t5 && t5.then) {
        if (r4.__u |= 128 | c4, o5) {
          for (~(T4 = o5.indexOf(l4 || void 0)) || (T4 = o5.length); (N2 = o5[T4 - 1]) && 8 == N2.nodeType; ) T4--;
          for (; T4 < o5.length; T4++) if (N2 = o5[T4]) if (o5[T4] = null, O2) {
            if (N2 == P2) break;
          } else {
            if (8 != N2.nodeType) break;
            N2.data.startsWith("$s") && (P2 = B(O2 = N2));
          }
        }
        if (!O2) {
          for (; l4 && 8 == l4.nodeType && l4.nextSibling; ) l4 = l4.nextSibling;
          O2 = l4;
        }
        (s4 = B(O2 = r4.__c.__z || (r4.__c.__z = O2))) ? (r4.__e = O2, l4 = s4) : r4.__e = l4, l4 = l4 && l4.nextSibling;
      } else o5 && o5.some(g);
      else r4.__e = u4.__e;
      r4.__k || (r4.__k = u4.__k || []), t5 && t5.then || D(r4), n.__e(t5, r4, u4);
    }
  } else l4 = r4.__e = F(u4.__e, r4, u4, i4, f5, o5, e4, c4, a5, t4);
  return (s4 = n.diffed) && s4(r4), l4;
}
function B(n3, t4) {
  if (n3 && 8 == n3.nodeType && n3.data.startsWith("$s")) for (var r4 = 1; n3 = n3.nextSibling; ) {
    if (8 == n3.nodeType) {
      if (n3.data.startsWith("$s")) r4++;
      else if (n3.data.startsWith("/$s") && !--r4) return n3;
    }
    t4 && t4.push(n3);
  }
}
function D(n3) {
  n3 && (n3.__c && (n3.__c.__g |= 4), n3.__k && n3.__k.some(D));
}
function E(t4, r4, u4) {
  for (var i4 = 0; i4 < u4.length; ) G(u4[i4++], u4[i4++], u4[i4++]);
  n.__c && n.__c(r4, t4), t4.some(function(r5) {
    try {
      t4 = r5.__h, r5.__h = [], t4.some(function(n3) {
        n3.call(r5);
      });
    } catch (t5) {
      n.__e(t5, r5.__v);
    }
  });
}
function F(t4, r4, u4, i4, f5, o5, e4, l4, c4, a5) {
  var s4, h5, y5, _3, k4, b3, m5, M2, $2 = u4.props || p, x3 = r4.props, C3 = r4.type;
  if ("svg" == C3 ? f5 = "http://www.w3.org/2000/svg" : "math" == C3 ? f5 = "http://www.w3.org/1998/Math/MathML" : f5 || (f5 = "http://www.w3.org/1999/xhtml"), o5) {
    for (s4 = 0; s4 < o5.length; s4++) if ((k4 = o5[s4]) && (C3 ? k4.localName == C3 : 3 == k4.nodeType)) {
      t4 = k4, o5[s4] = null;
      break;
    }
  }
  if (!t4) {
    if (M2 = a5.ownerDocument || document, !C3) return M2.createTextNode(x3);
    t4 = M2.createElementNS(f5, C3, x3.is ? x3 : a5), l4 && (n.__m && n.__m(r4, o5), l4 = false), o5 = null;
  }
  if (C3) {
    if (a5 = "template" == C3 && t4.content || t4, o5 = "textarea" == C3 && null != x3.defaultValue ? null : o5 && d.call(a5.childNodes), !l4 && o5) for ($2 = {}, s4 = 0; s4 < t4.attributes.length; s4++) $2[(k4 = t4.attributes[s4]).name] = k4.value;
    for (s4 in $2) k4 = $2[s4], "dangerouslySetInnerHTML" == s4 ? y5 = k4 : "children" == s4 || s4 in x3 || "value" == s4 && "defaultValue" in x3 || "checked" == s4 && "defaultChecked" in x3 || N(t4, s4, null, k4, f5);
    for (s4 in x3) k4 = x3[s4], "children" == s4 ? _3 = k4 : "dangerouslySetInnerHTML" == s4 ? h5 = k4 : "value" == s4 ? b3 = k4 : "checked" == s4 ? m5 = k4 : l4 && "function" != typeof k4 || $2[s4] === k4 || N(t4, s4, k4, $2[s4], f5);
    h5 ? (l4 || y5 && (h5.__html == y5.__html || h5.__html == t4.innerHTML) || (t4.innerHTML = h5.__html), r4.__k = []) : (y5 && (t4.textContent = ""), ("foreignObject" == C3 || "http://www.w3.org/1998/Math/MathML" == f5 && v.test(C3)) && (f5 = "http://www.w3.org/1999/xhtml"), I(a5, w(_3) ? _3 : [_3], r4, u4, i4, f5, o5, e4, o5 ? o5[0] : u4.__k && S(u4, 0), l4, c4), o5 && o5.some(g)), l4 && "textarea" != C3 || (s4 = "value", "progress" == C3 && null == b3 ? t4.removeAttribute(s4) : null == b3 || b3 === t4[s4] && ("progress" != C3 || b3) || N(t4, s4, b3, $2[s4], f5), s4 = "checked", null != m5 && m5 != t4[s4] && N(t4, s4, m5, $2[s4], f5));
  } else $2 === x3 || l4 && t4.data == x3 || (t4.data = x3);
  return t4;
}
function G(t4, r4, u4, i4) {
  try {
    "function" == typeof t4 ? r4 ? r4.__x = t4(r4) || 1 : i4 && (i4 = i4.__c || i4.__e) && (r4 = i4.__x) && (i4.__x = null, "function" == typeof r4 ? r4() : t4(null)) : t4.current = r4;
  } catch (t5) {
    n.__e(t5, u4);
  }
}
function J(t4, r4, u4) {
  var i4, f5, o5, e4;
  if (n.unmount && n.unmount(t4), !(i4 = t4.ref) || i4.current && i4.current != t4.__e || G(i4, null, r4, t4), i4 = t4.__c) {
    if (i4.componentWillUnmount) try {
      i4.componentWillUnmount();
    } catch (t5) {
      n.__e(t5, r4);
    }
    i4.__P = i4.__n = null;
  }
  if (i4 = t4.__k) for (e4 = 0; e4 < i4.length; e4++) i4[e4] && J(i4[e4], r4, "function" != typeof t4.type || u4 && !t4.props.__P);
  !u4 && (i4 = t4.__c) && (i4 = i4.__z) && (f5 = B(i4, o5 = [])) && (i4 == t4.__e && o5.some(g), g(f5), g(i4)), u4 || g(t4.__e), t4.__e = t4.__c = t4.__ = null;
}
function K(n3, t4, r4) {
  return this.constructor(n3, r4);
}
function Q(t4, r4) {
  var u4, i4, f5, o5;
  n.__ && n.__(t4, r4), 9 == r4.nodeType && (r4 = r4.documentElement), i4 = (u4 = t4 && 32 & t4.__u) ? null : r4.__k, r4.__k = m($, { children: [t4] }), f5 = [], o5 = [], z(r4, r4.__k, i4 || p, p, r4.namespaceURI, i4 ? null : r4.firstChild ? d.call(r4.childNodes) : null, f5, i4 ? i4.__e : r4.firstChild, u4, o5), E(f5, r4.__k, o5), r4.__k.props.children = null;
}
n = { __e: function(n3, t4, r4, u4) {
  for (var i4, o5, e4; t4 = t4.__; ) if ((i4 = t4.__c) && !(1 & i4.__g)) {
    i4.__g |= 4;
    try {
      if ((e4 = (o5 = i4.constructor) && o5.getDerivedStateFromError) && i4.setState(o5.getDerivedStateFromError(n3)), i4.componentDidCatch && (i4.componentDidCatch(n3, u4 || {}), e4 = 1), e4 && 8 & i4.__g) return void (i4.__g |= 2);
    } catch (t5) {
      n3 = t5;
    }
  }
  throw f = 0, n3;
} }, t = 0, r = function(n3) {
  return null != n3 && n3.constructor === h;
}, x.prototype.setState = function(n3, t4) {
  var r4 = this.__s;
  r4 && r4 != this.state || (r4 = this.__s = _({}, this.state)), "function" == typeof n3 && (n3 = n3(_({}, r4), this.props)), n3 && (_(r4, n3), this.__v && (t4 && this.__k.push(t4), L(this)));
}, x.prototype.forceUpdate = function(n3) {
  this.__v && (this.__g |= 4, n3 && this.__h.push(n3), L(this));
}, x.prototype.render = $, u = [], f = 0, o = function(n3, t4) {
  return n3.__v.__b - t4.__v.__b;
}, e = /* @__PURE__ */ Symbol(), l = /(PointerCapture)$|Capture$/i, c = 0, a = {}, s = 0;

// vendor/preact/hooks/dist/hooks.mjs
var t2;
var r2;
var u2;
var i2;
var o2 = Object.is;
var f2 = 0;
var c2 = [];
var e2 = [];
var a2 = n;
var v2 = a2.__b;
var l2 = a2.__r;
var m2 = a2.diffed;
var h2 = a2.__c;
var s2 = a2.unmount;
var p2 = a2.__;
function y2(n3, t4) {
  a2.__h && a2.__h(r2, n3, f2 || t4), f2 = 0;
  var u4 = r2.__H || (r2.__H = { __: [], __h: [] });
  return n3 >= u4.__.length && u4.__.push({}), u4.__[n3];
}
function A2(n3, u4) {
  var i4 = y2(t2++, 3);
  !a2.__s && E2(i4.__H, u4) && (i4.__P = true, i4.__ = n3, i4.u = u4, r2.__H.__h.push(i4));
}
function T2(n3) {
  return f2 = 5, w2(function() {
    return { current: n3 };
  }, []);
}
function w2(n3, r4) {
  var u4 = y2(t2++, 7);
  return E2(u4.__H, r4) && (u4.__ = n3(), u4.__H = r4), u4.__;
}
function g2() {
  var n3;
  do {
    for (; n3 = e2.shift(); ) try {
      C2(n3);
    } catch (t5) {
      a2.__e(t5, { __: (n3 = n3.__P) && n3.__v });
    }
    for (; n3 = c2.shift(); ) {
      var t4 = n3.__H;
      if (n3.__P && t4) try {
        t4.__h.some(C2), t4.__h.some(D2), t4.__h = [];
      } catch (r4) {
        t4.__h = [], a2.__e(r4, n3.__v);
      }
    }
  } while (e2.length);
}
a2.__b = function(n3) {
  r2 = null, v2 && v2(n3);
}, a2.__ = function(n3, t4) {
  n3 && t4.__k && t4.__k.__m && (n3.__m = t4.__k.__m), p2 && p2(n3, t4);
}, a2.__r = function(n3) {
  l2 && l2(n3), t2 = 0;
  var i4 = (r2 = n3.__c).__H;
  i4 && (u2 == r2 ? r2.__h = [] : (i4.__h.some(C2), i4.__h.some(D2), t2 = 0), i4.__h = [], i4.__.some(function(n4) {
    n4.__N && (n4.__ = n4.__N), n4.u = n4.__N = void 0;
  })), u2 = r2;
}, a2.diffed = function(n3) {
  m2 && m2(n3);
  var t4 = n3.__c;
  t4 && t4.__H && (t4.__H.__h.length && B2(c2.push(t4)), t4.__H.__.some(function(n4) {
    n4.u && (n4.__H = n4.u);
  })), u2 = r2 = null;
}, a2.__c = function(n3, t4) {
  t4.some(function(n4) {
    try {
      n4.__h.some(C2), n4.__h = n4.__h.filter(function(n5) {
        return !n5.__ || D2(n5);
      });
    } catch (t5) {
      n4.__h = [function() {
        throw t5;
      }];
    }
  }), h2 && h2(n3, t4);
}, a2.unmount = function(n3) {
  s2 && s2(n3);
  var t4, r4, u4 = n3.__c;
  u4 && u4.__H && (u4.__H.__.some(function(u5) {
    try {
      if (u5.__P && u5.__c) {
        if (void 0 === r4) {
          for (r4 = n3.__; r4 && (!r4.__c || !r4.__c.__P); ) r4 = r4.__;
          r4 = r4 && r4.__c;
        }
        u5.__P = r4, B2(e2.push(u5));
      } else C2(u5);
    } catch (n4) {
      t4 = n4;
    }
  }), u4.__H = void 0, t4 && a2.__e(t4, u4.__v));
};
var k2 = "function" == typeof requestAnimationFrame;
function z2(n3) {
  var t4, r4 = function() {
    clearTimeout(u4), k2 && cancelAnimationFrame(t4), setTimeout(n3);
  }, u4 = setTimeout(r4, 35);
  k2 && (t4 = requestAnimationFrame(r4));
}
function B2(n3) {
  1 != n3 && i2 == a2.requestAnimationFrame || ((i2 = a2.requestAnimationFrame) || z2)(g2);
}
function C2(n3) {
  var t4 = r2, u4 = n3.__c;
  "function" == typeof u4 && (n3.__c = void 0, u4()), r2 = t4;
}
function D2(n3) {
  var t4 = r2;
  n3.__c = n3.__(), r2 = t4;
}
function E2(n3, t4) {
  return !n3 || n3.length != t4.length || t4.some(function(t5, r4) {
    return !o2(t5, n3[r4]);
  });
}

// vendor/@preact/signals-core/dist/signals-core.module.js
var i3 = /* @__PURE__ */ Symbol.for("preact-signals");
function t3() {
  if (!(v3 > 1)) {
    var i4, t4 = false;
    !(function() {
      var i5 = c3;
      c3 = void 0;
      while (void 0 !== i5) {
        var t5 = i5.S;
        if (t5.v === i5.v) {
          for (var r5 = t5.t; void 0 !== r5; r5 = r5.x) if (r5.i === i5.i) r5.i = t5.i;
        }
        i5 = i5.o;
      }
    })();
    while (void 0 !== h3) {
      var r4 = h3;
      h3 = void 0;
      s3++;
      while (void 0 !== r4) {
        var n3 = r4.u;
        r4.u = void 0;
        r4.f &= -3;
        if (!(8 & r4.f) && w3(r4)) try {
          r4.c();
        } catch (r5) {
          if (!t4) {
            i4 = r5;
            t4 = true;
          }
        }
        r4 = n3;
      }
    }
    s3 = 0;
    v3--;
    if (t4) throw i4;
  } else v3--;
}
function r3(i4) {
  if (v3 > 0) return i4();
  u3 = ++e3;
  v3++;
  try {
    return i4();
  } finally {
    t3();
  }
}
var n2;
var o3 = void 0;
function f3(i4) {
  var t4 = o3, r4 = n2;
  o3 = void 0;
  n2 = void 0;
  try {
    return i4();
  } finally {
    o3 = t4;
    n2 = r4;
  }
}
var h3 = void 0;
var v3 = 0;
var s3 = 0;
var e3 = 0;
var u3 = 0;
var c3 = void 0;
var a3 = 0;
function d2(i4) {
  if (void 0 !== o3) {
    var t4 = i4.n;
    if (void 0 === t4 || t4.t !== o3) {
      t4 = { i: 0, S: i4, p: o3.s, n: void 0, t: o3, e: void 0, x: void 0, r: t4 };
      if (void 0 !== o3.s) o3.s.n = t4;
      o3.s = t4;
      i4.n = t4;
      if (32 & o3.f) i4.S(t4);
      return t4;
    } else if (-1 === t4.i) {
      t4.i = 0;
      if (void 0 !== t4.n) {
        t4.n.p = t4.p;
        if (void 0 !== t4.p) t4.p.n = t4.n;
        t4.p = o3.s;
        t4.n = void 0;
        o3.s.n = t4;
        o3.s = t4;
      }
      return t4;
    }
  }
}
function l3(i4, t4) {
  this.v = i4;
  this.i = 0;
  this.n = void 0;
  this.t = void 0;
  this.l = 0;
  this.W = null == t4 ? void 0 : t4.watched;
  this.Z = null == t4 ? void 0 : t4.unwatched;
  this.name = null == t4 ? void 0 : t4.name;
}
l3.prototype.brand = i3;
l3.prototype.h = function() {
  return true;
};
l3.prototype.S = function(i4) {
  var t4 = this, r4 = this.t;
  if (r4 !== i4 && void 0 === i4.e) {
    i4.x = r4;
    this.t = i4;
    if (void 0 !== r4) r4.e = i4;
    else f3(function() {
      var i5;
      null == (i5 = t4.W) || i5.call(t4);
    });
  }
};
l3.prototype.U = function(i4) {
  var t4 = this;
  if (void 0 !== this.t) {
    var r4 = i4.e, n3 = i4.x;
    if (void 0 !== r4) {
      r4.x = n3;
      i4.e = void 0;
    }
    if (void 0 !== n3) {
      n3.e = r4;
      i4.x = void 0;
    }
    if (i4 === this.t) {
      this.t = n3;
      if (void 0 === n3) f3(function() {
        var i5;
        null == (i5 = t4.Z) || i5.call(t4);
      });
    }
  }
};
l3.prototype.subscribe = function(i4) {
  var t4 = this;
  return x2(function() {
    var r4 = t4.value;
    f3(function() {
      return i4(r4);
    });
  }, { name: "sub" });
};
l3.prototype.valueOf = function() {
  return this.value;
};
l3.prototype.toString = function() {
  return this.value + "";
};
l3.prototype.toJSON = function() {
  return this.value;
};
l3.prototype.peek = function() {
  var i4 = this;
  return f3(function() {
    return i4.value;
  });
};
Object.defineProperty(l3.prototype, "value", { get: function() {
  var i4 = d2(this);
  if (void 0 !== i4) i4.i = this.i;
  return this.v;
}, set: function(i4) {
  if (i4 !== this.v) {
    if (s3 > 100) throw new Error("Cycle detected");
    !(function(i5) {
      if (0 !== v3 && 0 === s3) {
        if (i5.l !== u3) {
          i5.l = u3;
          c3 = { S: i5, v: i5.v, i: i5.i, o: c3 };
        }
      }
    })(this);
    this.v = i4;
    this.i++;
    a3++;
    v3++;
    try {
      for (var r4 = this.t; void 0 !== r4; r4 = r4.x) r4.t.N();
    } finally {
      t3();
    }
  }
} });
function y3(i4, t4) {
  return new l3(i4, t4);
}
function w3(i4) {
  for (var t4 = i4.s; void 0 !== t4; t4 = t4.n) if (t4.S.i !== t4.i || !t4.S.h() || t4.S.i !== t4.i) return true;
  return false;
}
function b(i4) {
  for (var t4 = i4.s; void 0 !== t4; t4 = t4.n) {
    var r4 = t4.S.n;
    if (void 0 !== r4) t4.r = r4;
    t4.S.n = t4;
    t4.i = -1;
    if (void 0 === t4.n) {
      i4.s = t4;
      break;
    }
  }
}
function _2(i4) {
  var t4 = i4.s, r4 = void 0;
  while (void 0 !== t4) {
    var n3 = t4.p;
    if (-1 === t4.i) {
      t4.S.U(t4);
      if (void 0 !== n3) n3.n = t4.n;
      if (void 0 !== t4.n) t4.n.p = n3;
    } else r4 = t4;
    t4.S.n = t4.r;
    if (void 0 !== t4.r) t4.r = void 0;
    t4 = n3;
  }
  i4.s = r4;
}
function j2(i4, t4) {
  l3.call(this, void 0, t4);
  this.x = i4;
  this.s = void 0;
  this.g = a3 - 1;
  this.f = 4;
}
j2.prototype = new l3();
j2.prototype.h = function() {
  this.f &= -3;
  if (1 & this.f) return false;
  if (32 == (36 & this.f)) return true;
  this.f &= -5;
  if (this.g === a3) return true;
  this.g = a3;
  this.f |= 1;
  if (this.i > 0 && !w3(this)) {
    this.f &= -2;
    return true;
  }
  var i4 = o3;
  try {
    b(this);
    o3 = this;
    var t4 = this.x();
    if (16 & this.f || this.v !== t4 || 0 === this.i) {
      this.v = t4;
      this.f &= -17;
      this.i++;
    }
  } catch (i5) {
    this.v = i5;
    this.f |= 16;
    this.i++;
  }
  o3 = i4;
  _2(this);
  this.f &= -2;
  return true;
};
j2.prototype.S = function(i4) {
  if (void 0 === this.t) {
    this.f |= 36;
    for (var t4 = this.s; void 0 !== t4; t4 = t4.n) t4.S.S(t4);
  }
  l3.prototype.S.call(this, i4);
};
j2.prototype.U = function(i4) {
  if (void 0 !== this.t) {
    l3.prototype.U.call(this, i4);
    if (void 0 === this.t) {
      this.f &= -33;
      for (var t4 = this.s; void 0 !== t4; t4 = t4.n) t4.S.U(t4);
    }
  }
};
j2.prototype.N = function() {
  if (!(2 & this.f)) {
    this.f |= 6;
    for (var i4 = this.t; void 0 !== i4; i4 = i4.x) i4.t.N();
  }
};
Object.defineProperty(j2.prototype, "value", { get: function() {
  if (1 & this.f) throw new Error("Cycle detected");
  var i4 = d2(this);
  this.h();
  if (void 0 !== i4) i4.i = this.i;
  if (16 & this.f) throw this.v;
  return this.v;
} });
function O(i4, t4) {
  return new j2(i4, t4);
}
function p3(i4) {
  var r4 = i4.j;
  i4.j = void 0;
  if ("function" == typeof r4) {
    v3++;
    var n3 = o3;
    o3 = void 0;
    try {
      r4();
    } catch (t4) {
      i4.f &= -2;
      i4.f |= 8;
      g3(i4);
      throw t4;
    } finally {
      o3 = n3;
      t3();
    }
  }
}
function g3(i4) {
  for (var t4 = i4.s; void 0 !== t4; t4 = t4.n) t4.S.U(t4);
  i4.x = void 0;
  i4.s = void 0;
  p3(i4);
}
function S2(i4) {
  if (o3 !== this) throw new Error("Out-of-order effect");
  _2(this);
  o3 = i4;
  this.f &= -2;
  try {
    if (8 & this.f) g3(this);
  } finally {
    t3();
  }
}
function m3(i4, t4) {
  this.x = i4;
  this.j = void 0;
  this.s = void 0;
  this.u = void 0;
  this.f = 32;
  this.name = null == t4 ? void 0 : t4.name;
  if (n2) n2.push(this);
}
m3.prototype.c = function() {
  var i4 = this.S();
  try {
    if (8 & this.f) return;
    if (void 0 === this.x) return;
    var t4 = this.x();
    if ("function" == typeof t4) this.j = t4;
  } finally {
    i4();
  }
};
m3.prototype.S = function() {
  if (1 & this.f) throw new Error("Cycle detected");
  this.f |= 1;
  this.f &= -9;
  p3(this);
  b(this);
  v3++;
  var i4 = o3;
  o3 = this;
  return S2.bind(this, i4);
};
m3.prototype.N = function() {
  if (!(2 & this.f)) {
    this.f |= 2;
    this.u = h3;
    h3 = this;
  }
};
m3.prototype.d = function() {
  this.f |= 8;
  if (!(1 & this.f)) g3(this);
};
m3.prototype.dispose = function() {
  this.d();
};
function x2(i4, t4) {
  var r4 = new m3(i4, t4);
  try {
    r4.c();
  } catch (i5) {
    r4.d();
    throw i5;
  }
  var n3 = r4.d.bind(r4);
  n3[Symbol.dispose] = n3;
  return n3;
}

// vendor/@preact/signals/dist/signals.module.js
var h4;
var d3;
var p4;
var m4 = "undefined" != typeof window && !!window.__PREACT_SIGNALS_DEVTOOLS__;
var g4 = [];
x2(function() {
  h4 = this.N;
})();
function b2(i4, n3) {
  n[i4] = n3.bind(null, n[i4] || function() {
  });
}
function y4(i4) {
  if (p4) {
    var n3 = p4;
    p4 = void 0;
    n3();
  }
  p4 = i4 && i4.S();
}
function w4(i4) {
  var n3 = this, r4 = i4.data, t4 = useSignal(r4);
  t4.name = "ReactiveDom";
  t4.value = r4;
  var e4 = w2(function() {
    var i5 = n3, r5 = n3.__v;
    while (r5 = r5.__) if (r5.__c) {
      r5.__c.__$f |= 4;
      break;
    }
    var o5 = O(function() {
      var i6 = t4.value.value;
      return 0 === i6 ? 0 : true === i6 ? "" : i6 || "";
    }), e5 = O(function() {
      return !Array.isArray(o5.value) && !r(o5.value);
    }), u5 = x2(function() {
      this.N = M;
      if (e5.value) {
        var n4 = o5.value;
        if (i5.__v && i5.__v.__e && 3 === i5.__v.__e.nodeType) i5.__v.__e.data = n4;
      }
    }), c5 = n3.__$u.d;
    n3.__$u.d = function() {
      u5();
      c5.call(this);
    };
    return [e5, o5];
  }, []), u4 = e4[0], c4 = e4[1];
  return u4.value ? c4.peek() : c4.value;
}
w4.displayName = "ReactiveTextNode";
Object.defineProperties(l3.prototype, { constructor: { configurable: true, value: k($, null).constructor }, type: { configurable: true, value: w4 }, props: { configurable: true, get: function() {
  var i4 = this;
  return { data: { get value() {
    return i4.value;
  } } };
} }, __b: { configurable: true, value: 1 } });
b2("__b", function(i4, n3) {
  y4();
  d3 = void 0;
  if ("string" == typeof n3.type) {
    var r4, t4 = n3.props;
    for (var f5 in t4) if ("children" !== f5) {
      var o5 = t4[f5];
      if (o5 instanceof l3) {
        if (!r4) n3.__np = r4 = {};
        r4[f5] = o5;
        t4[f5] = o5.peek();
      }
    }
  }
  i4(n3);
});
b2("__r", function(i4, r4) {
  i4(r4);
  if (r4.type !== $) {
    y4();
    var t4, f5 = r4.__c;
    if (f5) {
      f5.__$f &= -2;
      if (void 0 === (t4 = f5.__$u)) f5.__$u = t4 = (function(i5, n3) {
        var r5;
        x2(function() {
          r5 = this;
        }, { name: n3 });
        r5.c = i5;
        return r5;
      })(/* @__PURE__ */ (function(i5) {
        return function() {
          var n3;
          if (m4) null == (n3 = this.y) || n3.call(this);
          i5.__$f |= 1;
          i5.setState({});
        };
      })(f5), "function" == typeof r4.type ? r4.type.displayName || r4.type.name : "");
    }
    d3 = f5;
    y4(t4);
  }
});
b2("__e", function(i4, n3, r4, t4) {
  y4();
  d3 = void 0;
  i4(n3, r4, t4);
});
b2("diffed", function(i4, n3) {
  y4();
  d3 = void 0;
  var r4;
  if ("string" == typeof n3.type && (r4 = n3.__e)) {
    var t4 = n3.__np, f5 = n3.props, o5 = r4.U;
    if (o5) for (var e4 in o5) {
      var u4 = o5[e4];
      if (!(void 0 === u4 || t4 && e4 in t4)) {
        u4.d();
        o5[e4] = void 0;
      }
    }
    if (t4) {
      if (!o5) {
        o5 = {};
        r4.U = o5;
      }
      for (var a5 in t4) {
        var c4 = o5[a5], v4 = t4[a5];
        if (void 0 === c4) {
          c4 = k3(r4, a5, v4, f5);
          o5[a5] = c4;
        } else c4.o(v4, f5);
      }
    }
  }
  i4(n3);
});
function k3(i4, n3, r4, t4) {
  var f5 = n3 in i4 && void 0 === i4.ownerSVGElement, o5 = y3(r4);
  return { o: function(i5, n4) {
    o5.value = i5;
    t4 = n4;
  }, d: x2(function() {
    this.N = M;
    var r5 = o5.value.value;
    if (t4[n3] !== r5) {
      t4[n3] = r5;
      if (f5) i4[n3] = r5;
      else if (null != r5 && (false !== r5 || "-" === n3[4])) i4.setAttribute(n3, r5);
      else i4.removeAttribute(n3);
    }
  }) };
}
b2("unmount", function(i4, n3) {
  if ("string" == typeof n3.type) {
    var r4 = n3.__e;
    if (r4) {
      var t4 = r4.U;
      if (t4) {
        r4.U = void 0;
        for (var f5 in t4) {
          var o5 = t4[f5];
          if (o5) o5.d();
        }
      }
    }
    var e4 = n3.__np;
    if (e4) {
      var u4 = n3.props;
      for (var a5 in e4) u4[a5] = e4[a5];
    }
    n3.__np = void 0;
  } else {
    var c4 = n3.__c;
    if (c4) {
      c4.__$f |= 8;
      var v4 = c4.__$u;
      if (v4) {
        c4.__$u = void 0;
        v4.d();
      }
    }
  }
  i4(n3);
});
b2("__h", function(i4, n3, r4, t4) {
  if (t4 < 3) n3.__$f |= 2;
  i4(n3, r4, t4);
});
x.prototype.shouldComponentUpdate = function(i4, n3) {
  if (this.__R) return true;
  var r4 = this.__$u, t4 = r4 && void 0 !== r4.s;
  for (var f5 in n3) return true;
  if (this.__f || "boolean" == typeof this.u && true === this.u) {
    var o5 = 2 & this.__$f;
    if (!(t4 || o5 || 4 & this.__$f)) return true;
    if (1 & this.__$f) return true;
  } else {
    if (!(t4 || 4 & this.__$f)) return true;
    if (3 & this.__$f) return true;
  }
  for (var e4 in i4) if ("__source" !== e4 && i4[e4] !== this.props[e4]) return true;
  for (var u4 in this.props) if (!(u4 in i4)) return true;
  return false;
};
function useSignal(i4, n3) {
  return w2(function() {
    return y3(i4, n3);
  }, []);
}
var A3 = function(i4) {
  queueMicrotask(function() {
    queueMicrotask(i4);
  });
};
function F2() {
  r3(function() {
    var i4;
    while (i4 = g4.shift()) h4.call(i4);
  });
}
function M() {
  if (1 === g4.push(this)) (n.requestAnimationFrame || A3)(F2);
}

// src/clock.ts
var local = y3(read());
function read() {
  try {
    return localStorage.getItem("kuberewind.local") === "true";
  } catch {
    return false;
  }
}
function toggleLocal() {
  local.value = !local.value;
  try {
    localStorage.setItem("kuberewind.local", String(local.value));
  } catch {
  }
}
var two = (n3) => String(n3).padStart(2, "0");
var offset = (ms) => local.value ? -new Date(ms).getTimezoneOffset() : 0;
function zone(ms) {
  if (!local.value) return "UTC";
  const minutes = offset(ms), abs = Math.abs(minutes);
  return `${minutes < 0 ? "−" : "+"}${two(Math.floor(abs / 60))}:${two(abs % 60)}`;
}
var zoneName = () => local.value ? Intl.DateTimeFormat().resolvedOptions().timeZone : "UTC";
var shifted = (ms) => new Date(ms + offset(ms) * 6e4);
function day(ms) {
  const d4 = shifted(ms);
  return `${d4.getUTCFullYear()}-${two(d4.getUTCMonth() + 1)}-${two(d4.getUTCDate())}`;
}
function clock(ms, seconds = true, millis = false) {
  const d4 = shifted(ms);
  return `${two(d4.getUTCHours())}:${two(d4.getUTCMinutes())}${seconds ? `:${two(d4.getUTCSeconds())}` : ""}${millis ? `.${String(d4.getUTCMilliseconds()).padStart(3, "0")}` : ""}`;
}
var full = (ms) => `${day(ms)} ${clock(ms, true, true)} ${zone(ms)}`;
var brief = (ms, other) => day(ms) === day(other) ? clock(ms) : `${day(ms)} ${clock(ms)}`;
function span(ms) {
  const s4 = Math.abs(ms) / 1e3;
  if (s4 < 1) return `${Math.round(s4 * 1e3)} ms`;
  if (s4 < 90) return `${Math.round(s4)} s`;
  if (s4 < 5400) return `${Math.round(s4 / 60)} min`;
  return s4 < 129600 ? `${Math.round(s4 / 360) / 10} h` : `${Math.round(s4 / 8640) / 10} d`;
}
var grouped = new Intl.NumberFormat("en-US");
var count = (n3) => grouped.format(n3);
var compact = (n3) => n3 < 1e3 ? String(n3) : n3 < 99950 ? `${Math.round(n3 / 100) / 10}k` : n3 < 1e6 ? `${Math.round(n3 / 1e3)}k` : `${Math.round(n3 / 1e5) / 10}M`;
var steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 108e5, 216e5, 432e5, 864e5, 1728e5, 6048e5, 2592e6, 7776e6, 31536e6];
var step = (ms) => steps.find((s4) => s4 >= ms) ?? Math.ceil(ms / 31536e6) * 31536e6;
function marks(from, to, room2) {
  const by = step((to - from) / Math.max(1, room2)), found = [];
  let seen = "";
  for (let ms = aligned(from, by); ms < to && found.length < 200; ms = aligned(ms + by, by)) {
    const today = day(ms), fresh2 = today !== seen;
    seen = today;
    const time = clock(ms, by < 6e4, by < 1e3);
    found.push({ ms, label: by >= 864e5 ? today.slice(5) : fresh2 && found.length > 0 ? today.slice(5) : time, strong: fresh2 });
  }
  return found;
}
function aligned(ms, by) {
  const shift = offset(ms) * 6e4;
  return Math.ceil((ms + shift) / by) * by - shift;
}
function changeOfOffset(from, to) {
  if (offset(from) === offset(to)) return null;
  let low = from, high = to;
  while (high - low > 1e3) {
    const middle2 = (low + high) / 2;
    if (offset(middle2) === offset(from)) low = middle2;
    else high = middle2;
  }
  return high;
}

// src/api.ts
var Failure = class extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
  code;
};
var place = "kuberewind.token";
var loopback = location.protocol === "http:";
var locked = y3("");
var away = y3("");
var renewed = y3(0);
var revision = null;
var token = loopback ? read2() : "";
function read2() {
  try {
    return localStorage.getItem(place) ?? "";
  } catch {
    return "";
  }
}
function setToken(value2) {
  token = value2;
  if (loopback) try {
    localStorage.setItem(place, value2);
  } catch {
  }
  again();
}
function again() {
  if (loopback) token = read2() || token;
  locked.value = "";
  renewed.value++;
}
var admitted = y3(false);
async function admit(code) {
  try {
    const answer = await fetch("/code/v1/exchange", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ code }),
      cache: "no-store"
    });
    if (answer.ok) setToken((await answer.json()).token);
    else locked.value = (await failure(answer)).message;
  } catch {
    locked.value = "The server does not answer.";
  }
}
async function failure(answer, aborted) {
  let message = "";
  try {
    message = (await answer.json()).message ?? "";
  } catch {
  }
  aborted?.throwIfAborted();
  if (answer.status === 414 || answer.status === 431) message = "the server takes no question that is so long: make the filter shorter";
  return new Failure(answer.status, message || `the server answered ${answer.status} ${answer.statusText}`);
}
var kept = /* @__PURE__ */ new Map();
var most = 300;
function forget(now2) {
  if (now2 === void 0 || now2 === revision) return;
  kept.clear();
  if (revision !== null) renewed.value++;
  revision = now2;
}
function setBack() {
  kept.clear();
  renewed.value++;
}
function address(shape2, params) {
  const query2 = new URLSearchParams();
  for (const [name, value2] of Object.entries(params))
    for (const one of Array.isArray(value2) ? value2 : [value2]) if (one !== void 0 && one !== null && one !== "") query2.append(name, String(one));
  return `/timeline/v1/${shape2}?${query2}`;
}
async function get(shape2, params, aborted, mark3, took) {
  const url = address(shape2, params), key = `${url} ${mark3}`;
  const known = mark3 !== void 0 && kept.get(key);
  if (known) return known;
  const began = performance.now(), answer = await send(url, aborted);
  const body = await reached(answer.json(), aborted);
  took?.(performance.now() - began);
  forget(body.revision);
  if (mark3 !== void 0) keep(key, body);
  return body;
}
function keep(key, body) {
  if (kept.size >= most) kept.delete(kept.keys().next().value);
  kept.set(key, body);
}
var orderPatience = 1e4;
async function order(method, url, body) {
  const aborted = AbortSignal.timeout(orderPatience), answer = await send(url, aborted, { method, ...body ? { body: JSON.stringify(body) } : {} });
  return { body: await reached(answer.json(), aborted), made: answer.status === 201 };
}
async function send(url, aborted, what = {}) {
  const headers = { ...token ? { Authorization: `Bearer ${token}` } : {}, ...what.body ? { "Content-Type": "application/json" } : {} };
  const answer = await reached(fetch(url, { ...what, headers, signal: aborted, cache: "no-store" }), aborted);
  if (answer.status === 503) return absent(await failure(answer, aborted));
  if (away.peek()) {
    away.value = "";
    renewed.value++;
  }
  if (answer.ok) return answer;
  const failed = await failure(answer, aborted);
  if (answer.status === 401 || answer.status === 403 && !url.startsWith("/session/")) {
    kept.clear();
    locked.value = failed.message;
  }
  throw failed;
}
function absent(why) {
  away.value = why.message;
  throw new Error(why.message);
}
async function reached(what, aborted) {
  try {
    return await what;
  } catch (e4) {
    if (!aborted?.aborted) away.value = "The server does not answer. Start replay serve again; the page goes on by itself.";
    throw e4;
  }
}

// src/focus.ts
var classes = ["change", "added", "deleted", "status", "event", "sync", "heartbeat"];
var usual = classes.filter((c4) => c4 !== "heartbeat");
var none = { namespace: [], resource: [], class: [], name: "", label: "", manager: "", path: "", type: "" };
var start = {
  last: 36e5,
  from: 0,
  to: 0,
  at: null,
  time: null,
  wanted: "",
  uid: "",
  resource: "",
  namespace: "",
  name: "",
  base: null,
  panel: "now",
  tab: "change",
  filter: none,
  group: "owner",
  sort: "changes",
  cluster: ""
};
var widths = [["d", 864e5], ["h", 36e5], ["m", 6e4], ["s", 1e3]];
function short(ms) {
  for (const [unit, size2] of widths) if (ms % size2 === 0) return `${ms / size2}${unit}`;
  return `${Math.round(ms / 1e3)}s`;
}
function long(text) {
  const found = /^(\d+(?:\.\d+)?)([dhms])$/.exec(text);
  const size2 = found && widths.find(([unit]) => unit === found[2]);
  return found && size2 && Number(found[1]) > 0 ? Number(found[1]) * size2[1] : null;
}
var seqOf = (text) => text && /^seq:\d+$/.test(text) ? Number(text.slice(4)) : null;
var chosen = (text, of2, usually) => of2.includes(text) ? text : usually;
var latest = Date.UTC(2261, 0, 1);
function parse(fragment) {
  const q2 = new URLSearchParams(fragment.replace(/^#/, ""));
  const text = (name2) => q2.get(name2) ?? "";
  const at2 = seqOf(q2.get("at")), from = Number(q2.get("from")), to = Number(q2.get("to"));
  const fixed2 = q2.has("from") && q2.has("to") && from >= 0 && from < to && to <= latest;
  const wanted = at2 === null && text("at") !== "now" ? text("at") : "";
  const uid2 = text("uid"), name = text("name"), named2 = uid2 !== "" || name !== "";
  return {
    ...start,
    last: fixed2 ? null : long(text("last")) ?? start.last,
    from: fixed2 ? from : 0,
    to: fixed2 ? to : 0,
    at: at2,
    wanted,
    uid: uid2,
    resource: text("resource"),
    namespace: text("namespace"),
    name,
    base: seqOf(q2.get("base")),
    panel: chosen(q2.get("panel"), ["now", "object", "changes", "compare", "session"], named2 ? "object" : "now"),
    tab: text("tab") || "change",
    group: chosen(q2.get("group"), ["owner", "node", "none"], "owner"),
    sort: chosen(q2.get("sort"), ["changes", "trouble", "name"], "changes"),
    cluster: text("cluster"),
    filter: filterOf(q2)
  };
}
var names = { namespace: "in", resource: "of", class: "class", name: "find", label: "label", manager: "manager", path: "path", type: "type" };
function filterOf(q2) {
  const text = (name) => q2.get(names[name]) ?? "";
  return {
    namespace: q2.getAll(names.namespace),
    resource: q2.getAll(names.resource),
    class: q2.getAll("class").filter((c4) => classes.includes(c4)),
    name: text("name"),
    label: text("label"),
    manager: text("manager"),
    path: text("path"),
    type: text("type")
  };
}
function show(f5) {
  const q2 = new URLSearchParams();
  const put2 = (name, value2, usually = "") => {
    if (value2 !== usually) q2.append(name, value2);
  };
  if (f5.at !== null) q2.append("at", `seq:${f5.at}`);
  else put2("at", f5.wanted);
  if (f5.last === null) {
    q2.append("from", String(Math.round(f5.from)));
    q2.append("to", String(Math.round(f5.to)));
  } else q2.append("last", short(f5.last));
  put2("uid", f5.uid);
  if (f5.name) {
    put2("resource", f5.resource);
    put2("namespace", f5.namespace);
    put2("name", f5.name);
  }
  if (f5.base !== null) q2.append("base", `seq:${f5.base}`);
  put2("panel", f5.panel, f5.name || f5.uid ? "object" : "now");
  put2("tab", f5.tab, "change");
  put2("group", f5.group, "owner");
  put2("sort", f5.sort, "changes");
  put2("cluster", f5.cluster);
  for (const name of ["namespace", "resource", "class"]) for (const one of f5.filter[name]) q2.append(names[name], one);
  for (const name of ["name", "label", "manager", "path", "type"]) put2(names[name], f5.filter[name]);
  return "#" + q2.toString().replaceAll("%3A", ":").replaceAll("%2F", "/");
}
var taken = (() => {
  const q2 = new URLSearchParams(location.hash.replace(/^#/, "")), code = q2.get("code") ?? "";
  if (code) {
    q2.delete("code");
    history.replaceState(null, "", q2.size > 0 ? "#" + q2 : location.pathname);
  }
  return code;
})();
var focus = y3(parse(location.hash));
var cluster = O(() => focus.value.cluster);
var glided = -Infinity;
var pendingWrite = 0;
function write() {
  clearTimeout(pendingWrite);
  pendingWrite = 0;
  const f5 = focus.peek();
  history.replaceState({ time: f5.time }, "", show(f5));
}
var late = 100;
function move(change, how = "step") {
  const next2 = { ...focus.peek(), ...change };
  if (show(next2) === show(focus.peek())) {
    focus.value = next2;
    return;
  }
  const now2 = performance.now(), replace = how === "learn" || how === "glide" && now2 - glided < 1e3;
  glided = how === "glide" ? now2 : -Infinity;
  if (!replace && pendingWrite) write();
  focus.value = next2;
  if (!replace) history.pushState({ time: next2.time }, "", show(next2));
  else if (how === "learn") write();
  else pendingWrite ||= setTimeout(write, late);
}
var filter = (change, how = "step") => move({ filter: { ...focus.peek().filter, ...change } }, how);
var clearFilter = () => move({ filter: none });
var enter = (to) => move({
  cluster: to,
  at: null,
  time: null,
  wanted: "",
  base: null,
  uid: "",
  resource: "",
  namespace: "",
  name: "",
  filter: none,
  panel: "now"
});
var filtered = (f5) => JSON.stringify(f5) !== JSON.stringify(none);
addEventListener("popstate", (e4) => {
  clearTimeout(pendingWrite);
  pendingWrite = 0;
  focus.value = { ...parse(location.hash), time: e4.state?.time ?? null };
});

// src/query.ts
var running = 0;
var drawing = 0;
var idle = () => running === 0;
var drawn = () => drawing === 0;
function begins(aside = false) {
  const views = aside ? 0 : 1;
  running++;
  drawing += views;
  return () => {
    running--;
    drawing -= views;
  };
}
function query(ask) {
  const q2 = { answer: y3(null), asked: y3(null), failed: y3(""), missing: y3(false), busy: y3(false) };
  x2(() => {
    const asked2 = ask();
    void renewed.value;
    if (!asked2 || !admitted.value) return drop(q2);
    const controller = new AbortController();
    const ends2 = begins(asked2.aside);
    let begun3 = false;
    const begin2 = () => {
      if (controller.signal.aborted) return;
      begun3 = true;
      void run(q2, asked2, controller.signal).finally(ends2);
    };
    let timer = 0;
    if (asked2.wait) timer = setTimeout(begin2, asked2.wait);
    else queueMicrotask(begin2);
    return () => {
      clearTimeout(timer);
      if (!begun3) ends2();
      controller.abort();
    };
  });
  return q2;
}
function drop(q2) {
  q2.answer.value = q2.asked.value = null;
  q2.failed.value = "";
  q2.busy.value = false;
}
async function run(q2, asked2, aborted) {
  const began = performance.now(), like = asked2.like !== void 0 && q2.asked.peek()?.like === asked2.like && whole(q2.answer.peek());
  q2.busy.value = true;
  try {
    for await (const answer of all(asked2, aborted, like)) {
      if (aborted.aborted) return;
      r3(() => {
        q2.asked.value = asked2;
        q2.failed.value = "";
        q2.missing.value = false;
        q2.answer.value = answer;
      });
    }
  } catch (e4) {
    if (aborted.aborted || !(e4 instanceof Failure)) return;
    refused(q2, e4);
  }
  if (aborted.aborted) return;
  q2.busy.value = false;
  asked2.ended?.(performance.now() - began);
}
var whole = (answer) => answer !== null && !answer.older;
async function* all(asked2, aborted, like) {
  const ask = (cursor2) => get(asked2.shape, { ...asked2.params, cursor: cursor2 }, aborted, asked2.mark, asked2.took);
  for (let older2, again2 = false; older2 || !again2; again2 = true) {
    if (again2) await asked2.rest?.();
    let answer = await ask(older2);
    if (!again2 && !like) yield answer;
    for (let page2 = 1; page2 < (asked2.pages ?? 1) && asked2.add && answer.next; page2++) {
      answer = asked2.add(answer, await ask(answer.next));
      if (!again2 && !like) yield answer;
    }
    if (like ? !answer.older : again2) yield answer;
    older2 = answer.older;
  }
}
function refused(q2, e4) {
  q2.missing.value = e4.code === 404;
  q2.failed.value = e4.message;
  q2.answer.value = null;
}

// src/live.ts
var head = y3(null);
var calm = y3(null);
var listed = y3(null);
var laned = y3(null);
var recording = y3(null);
var stopped = O(() => recording.value !== null && !recording.value.now);
var fresh = y3(0);
var every = 500;
var later = 2e3;
var patience = 3e3;
var slow = 1e4;
var slowest = 12e4;
var longest = 6e5;
var since = null;
var published = 0;
var calmed = 0;
var asked = 0;
var pause = slow;
var lanesRest = 0;
var chain = "";
function costs(ms) {
  pause = Math.min(slowest, Math.max(slow, 10 * ms));
}
function lanesAsked() {
  lanesRest = performance.now() + longest;
}
function lanesTook(ms) {
  lanesRest = performance.now() + Math.min(slowest, 2 * ms);
}
function learn(point, said) {
  recording.value = said;
  publish(point);
}
function publish(point) {
  const now2 = performance.now(), known = head.peek(), quiet = idle();
  const waits2 = known && (known.seq === point.seq || !drawn() && now2 - published < patience);
  if (!waits2) {
    published = now2;
    head.value = point;
  }
  follows(head.peek(), now2, quiet);
}
function follows(point, now2, quiet) {
  if (!point) return;
  if (due(calm.peek(), point, now2 - calmed > slow)) {
    calmed = now2;
    calm.value = point;
  }
  if (due(laned.peek(), point, now2 > lanesRest)) laned.value = point;
  if (due(listed.peek(), point, now2 - asked > (quiet ? pause : slowest))) {
    asked = now2;
    listed.value = point;
  }
}
var due = (is, next2, rested) => is === null || rested && is.seq !== next2.seq;
async function follow(shown2) {
  for (; ; ) {
    const began = performance.now(), worked = document.visibilityState !== "visible" || locked.peek() !== "" || await look(shown2);
    const rest2 = (worked ? every : later) - (performance.now() - began);
    await new Promise((done) => setTimeout(done, Math.max(50, rest2)));
  }
}
async function look(shown2) {
  const known = head.peek(), f5 = focus.peek();
  if (!known) return begin();
  if (!shown2()) return true;
  if (f5.at === null) since = null;
  else since ??= known.seq;
  try {
    const tail = await get("tail", { after: since ?? known.seq, head: chain, cluster: f5.cluster }, AbortSignal.timeout(5e3));
    if (cluster.peek() !== f5.cluster) return true;
    recording.value = tail.recording;
    chain = tail.head;
    if (tail.other) begun(tail);
    if (since === null) publish({ seq: tail.seq, time: tail.time });
    fresh.value = since === null ? 0 : tail.count;
    return true;
  } catch {
    return false;
  }
}
function begun(tail) {
  if (since !== null) since = tail.seq;
  r3(() => {
    head.value = calm.value = listed.value = laned.value = { seq: tail.seq, time: tail.time };
  });
  setBack();
}
function begin() {
  if (away.peek() && idle()) renewed.value++;
  return away.peek() === "";
}
function back() {
  since = null;
  fresh.value = 0;
}
var past = O(() => focus.value.at !== null);
var floats = O(() => focus.value.at === null && focus.value.last !== null);
x2(() => {
  if (!past.value) calmed = -Infinity;
});
x2(() => {
  if (floats.value) lanesRest = -Infinity;
});
x2(() => {
  void cluster.value;
  chain = "";
  r3(() => {
    head.value = calm.value = listed.value = laned.value = recording.value = null;
  });
  back();
});

// src/window.ts
var meta = query(() => ({ shape: "meta", params: { cluster: cluster.value } }));
x2(() => {
  const m5 = meta.answer.value;
  if (m5?.cluster) learn(m5.head, m5.recording);
});
var whole2 = O(() => upTo(head.value));
function upTo(end2) {
  const m5 = meta.answer.value;
  return m5 && end2 && m5.first ? { from: m5.first.time, to: Math.max(end2.time, m5.first.time + 1e3) } : null;
}
var live = O(() => focus.value.at === null && focus.value.last !== null && focus.value.wanted === "");
var fixed = O(() => JSON.stringify([focus.value.last, focus.value.from, focus.value.to]));
var shown = O(() => windowOf(whole2.value));
function windowOf(w5) {
  const [last2, from, to] = JSON.parse(fixed.value);
  if (!w5) return null;
  if (last2 === null) return { from, to };
  const by = step(last2 / 600);
  const end2 = Math.ceil((w5.to + 1) / by) * by;
  return { from: Math.max(end2 - last2, Math.floor(w5.from / by) * by), to: end2 };
}
var cursor = O(() => focus.value.at === null ? null : focus.value.time);
var scrub = y3(null);
var instant = O(() => `seq:${focus.value.at ?? head.value?.seq ?? 0}`);
var calmInstant = O(() => focus.value.at ?? calm.value?.seq ?? 0);
var troubled = O(() => focus.value.at ?? listed.value?.seq ?? 0);
var filters = O(() => JSON.stringify([focus.value.filter, cluster.value]));
function filterParams() {
  const [f5, c4] = JSON.parse(filters.value);
  return { ...f5, name: f5.name && !f5.name.includes("*") ? `*${f5.name}*` : f5.name, cluster: c4 };
}
function mark(to, end2 = head) {
  const h5 = end2.peek();
  if (h5 && to <= h5.time) return "";
  return String(live.value ? end2.value?.seq : head.peek()?.seq);
}
var stripWidth = y3(0);
var lanesWidth = y3(0);
var barWidth = 12;
var barsIn = (width2) => Math.max(60, Math.floor(width2 / barWidth));
function snap(s4) {
  const by = Math.max(1e3, step((s4.to - s4.from) / barsIn(lanesWidth.peek() || 600)));
  const from = Math.floor(s4.from / by) * by, to = Math.ceil(s4.to / by) * by;
  return { from, to: Math.max(to, from + by) };
}
function clamp(s4) {
  const w5 = whole2.peek();
  if (!w5) return s4;
  const room2 = Math.max(1e3, (w5.to - w5.from) * 0.02), most3 = w5.to - w5.from + 2 * room2;
  const width2 = Math.min(Math.max(s4.to - s4.from, 1e3), Math.max(most3, 1e3));
  const from = Math.min(Math.max(s4.from, w5.from - room2), w5.to + room2 - width2);
  return { from, to: from + width2 };
}
var gliding = y3(false);
var settle = () => gliding.value ? 120 : 0;
var hour = 36e5;

// src/data.ts
var slices = { pages: 1e4, add: summed };
var met = (i4) => i4.kind === "pruned" || i4.kind === "damaged";
function summed(a5, b3) {
  const counts = a5.counts.map((c4, k4) => c4.map((n3, i4) => n3 + (b3.counts[k4]?.[i4] ?? 0))), newer = b3.incomplete ?? [], before = (a5.incomplete ?? []).filter(met);
  const incomplete2 = [...newer, ...before.filter((i4) => !newer.some((known) => known.from === i4.from && known.text === i4.text))];
  const first2 = a5.ahead ? { ahead: a5.ahead } : {};
  const older2 = Object.fromEntries(a5.classes.map((c4) => [c4, (a5.before[c4] ?? 0) + (b3.before[c4] ?? 0)]));
  return { ...b3, ...first2, counts, incomplete: incomplete2, before: older2, hidden: { ...b3.hidden, heartbeat: (a5.hidden?.heartbeat ?? 0) + (b3.hidden?.heartbeat ?? 0) } };
}
var strip = query(() => {
  const w5 = whole2.value, bars2 = barsIn(stripWidth.value);
  if (!w5 || stripWidth.value === 0) return null;
  const by = live.value ? step((w5.to - w5.from) / bars2) : 1, to = Math.ceil((w5.to + 1) / by) * by;
  return { shape: "strip", params: { ...filterParams(), from: 0, to, bars: bars2 }, mark: mark(to), wait: 30, ...slices };
});
var begun2 = y3(false);
var long2 = 3e3;
var there = O(() => whole2.value !== null);
var untilBegun = () => new Promise((done) => {
  const stop = x2(() => {
    if (begun2.value || !there.value) queueMicrotask(() => {
      stop();
      done();
    });
  });
});
var density = query(() => {
  const s4 = shown.value;
  if (!s4 || lanesWidth.value === 0 || !begun2.value) return null;
  return { shape: "strip", params: { ...filterParams(), from: Math.round(s4.from), to: Math.round(s4.to), bars: barsIn(lanesWidth.value) }, mark: mark(s4.to), wait: settle(), ...slices };
});
var page = 100;
var pages = y3(1);
var order2 = O(() => JSON.stringify([focus.value.group, focus.value.sort]));
x2(() => {
  void filters.value;
  void order2.value;
  pages.value = 1;
});
var counted = O(() => live.value ? windowOf(upTo(laned.value)) : shown.value);
var countedTo = () => live.value ? laned : head;
var lanes = query(() => {
  const s4 = counted.value, [group, sort] = JSON.parse(order2.value);
  if (!s4) return null;
  if (live.value) lanesAsked();
  const like = JSON.stringify([order2.value, filters.value, fixed.value, pages.value, renewed.value]);
  const follows2 = live.value ? { like, aside: lanes.answer.peek() !== null, ended: lanesTook } : {};
  const params = { ...filterParams(), from: Math.round(s4.from), to: Math.round(s4.to), group, sort, limit: page };
  return { shape: "lanes", params, mark: mark(s4.to, countedTo()), wait: settle(), pages: pages.value, add: (a5, b3) => ({ ...b3, lanes: [...a5.lanes, ...b3.lanes] }), rest: untilBegun, ...follows2 };
});
var visible = y3("");
var apart = 20;
var year = 365 * 864e5;
function padded(s4, by) {
  const half = (s4.to - s4.from) / 2;
  return { from: Math.max(0, Math.floor((s4.from - half) / by) * by), to: Math.min(latest, Math.ceil((s4.to + half) / by) * by) };
}
var ticks = query(() => {
  const s4 = shown.value, ids = visible.value;
  if (!s4 || !ids || lanesWidth.value === 0) return null;
  const stepMs = Math.min(year, step((s4.to - s4.from) / lanesWidth.value * apart)), p5 = padded(s4, stepMs);
  return { shape: "ticks", params: { ...filterParams(), lanes: ids, ...p5, stepMs }, mark: mark(p5.to), wait: settle() || 20 };
});
var states = query(() => {
  const s4 = counted.value, ids = visible.value;
  if (!s4 || !ids || !begun2.value) return null;
  const p5 = padded(s4, step((s4.to - s4.from) / 100));
  return { shape: "states", params: { cluster: cluster.value, lanes: ids, ...p5 }, mark: mark(p5.to, countedTo()), wait: settle() || 60, aside: live.value };
});
var come = (q2) => q2.answer.value !== null || q2.failed.value !== "";
var marked = () => (lanes.answer.value?.lanes.length ?? 0) === 0 || lanesWidth.value === 0 || come(ticks);
x2(() => {
  begun2.value = false;
  const timer = there.value ? setTimeout(() => {
    begun2.value = true;
  }, long2) : void 0;
  return () => clearTimeout(timer);
});
x2(() => {
  if (there.value && (stripWidth.value === 0 || come(strip)) && come(lanes) && marked()) begun2.value = true;
});
var panel = O(() => focus.value.panel);
var tab = O(() => focus.value.tab);
var subject = O(() => JSON.stringify([focus.value.uid, focus.value.resource, focus.value.namespace, focus.value.name]));
function subjectParams() {
  const [uid2, resource, namespace, name] = JSON.parse(subject.value);
  if (uid2) return { uid: uid2, cluster: cluster.value };
  return name ? { resource, namespace, name, cluster: cluster.value } : null;
}
var object = query(() => {
  const of2 = subjectParams();
  return of2 && head.value && focus.value.wanted === "" ? { shape: "object", params: { ...of2, at: instant.value }, mark: "" } : null;
});
x2(() => {
  const found = object.answer.value?.object, f5 = focus.peek();
  if (found?.uid && !f5.uid && f5.name === found.name) move({ uid: found.uid, resource: found.resource, namespace: found.namespace ?? "" }, "learn");
});
var related = query(() => {
  const uid2 = object.answer.value?.object.uid, at2 = object.asked.value?.params.at;
  if (!uid2 || subjectParams()?.uid !== uid2 || panel.value !== "object" || tab.value !== "change") return null;
  return { shape: "related", params: { uid: uid2, cluster: cluster.value, at: at2 }, mark: "" };
});
var blame = query(() => {
  const of2 = subjectParams();
  return of2 && head.value && panel.value === "object" && tab.value === "blame" ? { shape: "blame", params: { ...of2, at: instant.value }, mark: "" } : null;
});
var story = query(() => {
  const of2 = subjectParams(), s4 = shown.value;
  if (!of2 || !s4 || panel.value !== "object" || tab.value !== "story") return null;
  return { shape: "story", params: { ...of2, from: Math.round(s4.from), to: Math.round(s4.to) }, mark: mark(s4.to), wait: settle() };
});
var nearby = query(() => {
  const of2 = subjectParams();
  if (!of2 || calmInstant.value === 0 || focus.value.wanted !== "" || panel.value !== "object" || tab.value !== "nearby") return null;
  return { shape: "nearby", params: { ...of2, at: `seq:${calmInstant.value}` }, mark: "" };
});
var joined = (a5, b3) => ({ ...b3, rows: [...a5.rows ?? [], ...b3.rows ?? []] });
var morePages = y3(1);
x2(() => {
  void filters.value;
  void subject.value;
  void panel.value;
  void tab.value;
  morePages.value = 1;
});
var versions = query(() => {
  const of2 = subjectParams(), w5 = whole2.value, found = object.answer.value?.object;
  if (!of2 || !w5 || panel.value !== "object" || tab.value !== "versions" || !found?.uid) return null;
  const params = { cluster: cluster.value, resource: found.resource, namespace: found.namespace, name: found.name, from: w5.from, to: w5.to + 1, limit: 100, class: ["change", "added", "deleted", "status", "event", "sync", "heartbeat"] };
  return { shape: "changes", params, mark: mark(w5.to + 1), pages: morePages.value, add: joined };
});
var changes = query(() => {
  const s4 = shown.value;
  if (!s4 || panel.value !== "changes") return null;
  return { shape: "changes", params: { ...filterParams(), from: Math.round(s4.from), to: Math.round(s4.to), limit: 100 }, mark: mark(s4.to), pages: morePages.value, add: joined, wait: settle() };
});
var chosenUid = O(() => focus.value.uid);
var grouping = O(() => focus.value.group);
var sorting = O(() => focus.value.sort);
var filtering = O(() => focus.value.filter);
var lastWidth = O(() => focus.value.last);
var chosenAt = O(() => focus.value.at);
var hourEnd = O(() => focus.value.at === null ? calm.value?.time : focus.value.time);
var lastHour = O(() => {
  const w5 = whole2.value, at2 = hourEnd.value;
  return w5 && at2 ? { from: Math.max(w5.from, at2 - hour), to: at2 + 1 } : null;
});
var recent = query(() => {
  const h5 = lastHour.value;
  if (!h5 || panel.value !== "now" || !begun2.value) return null;
  return { shape: "changes", params: { ...filterParams(), from: h5.from, to: h5.to, limit: 30, class: recentClasses() }, mark: "", aside: true };
});
var recentCount = query(() => {
  const h5 = lastHour.value;
  return h5 && panel.value === "now" && begun2.value ? { shape: "strip", params: { ...filterParams(), from: h5.from, to: h5.to, bars: 60 }, mark: "", aside: true, ...slices } : null;
});
var recentClasses = () => {
  const chosen2 = JSON.parse(filters.value)[0].class;
  return chosen2.length > 0 ? chosen2 : ["change", "added", "deleted"];
};
var trouble = query(() => {
  const seq = troubled.value;
  if (panel.value !== "now" || seq === 0 || !begun2.value) return null;
  return { shape: "trouble", params: { cluster: cluster.value, at: `seq:${seq}` }, mark: "", aside: true, ...past.value ? {} : { took: costs } };
});
var base = O(() => focus.value.base);
var compare = query(() => {
  if (panel.value !== "compare" || base.value === null || !head.value) return null;
  const { namespace, resource } = filterParams();
  return { shape: "compare", params: { a: `seq:${base.value}`, b: instant.value, namespace, resource, cluster: cluster.value }, mark: "" };
});
var opened = y3("");
var compared = query(() => {
  if (panel.value !== "compare" || base.value === null || !opened.value) return null;
  return { shape: "compare", params: { a: `seq:${base.value}`, b: instant.value, uid: opened.value, cluster: cluster.value }, mark: "" };
});

// src/instant.ts
var of = (r4) => ({ uid: r4.uid ?? "", resource: r4.resource, namespace: r4.namespace ?? "", name: r4.name, panel: "object" });
var announced = y3("");
function freeze(f5, time) {
  const s4 = shown.peek(), w5 = whole2.peek();
  if (!s4 || !w5 || time === null) return {};
  const width2 = s4.to - s4.from;
  if (time >= s4.from && time < s4.to) return f5.last === null ? {} : { last: null, from: s4.from, to: s4.to };
  return { last: null, ...snap(clamp({ from: time - width2 * 0.7, to: time + width2 * 0.3 })) };
}
var turn = 0;
function take() {
  scrub.value = null;
  return ++turn;
}
addEventListener("popstate", take);
x2(() => {
  void cluster.value;
  take();
});
function look2(at2, time, more = {}) {
  take();
  arrive(at2, time, more);
}
function arrive(at2, time, more) {
  move({ ...freeze(focus.peek(), time), at: at2, time, wanted: "", ...more });
}
async function lookAt(time, more = {}) {
  const w5 = whole2.peek();
  if (!w5) return;
  const at2 = Math.round(Math.min(Math.max(time, w5.from + 1), w5.to));
  const mine = r3(() => {
    const n3 = take();
    scrub.value = at2;
    return n3;
  });
  try {
    const found = await resolve(String(at2));
    if (mine === turn) arrive(found.seq, at2, more);
  } catch (e4) {
    if (mine === turn) announced.value = e4 instanceof Failure ? e4.message : "";
  } finally {
    if (scrub.peek() === at2) scrub.value = null;
  }
}
var resolve = async (at2, zone2) => (await get("instant", { at: at2, zone: zone2, cluster: focus.peek().cluster })).at;
async function lookAtTyped(text) {
  const mine = take();
  try {
    const found = await resolve(text, zoneName());
    if (mine === turn) arrive(found.seq, found.time, {});
    return "";
  } catch (e4) {
    return e4 instanceof Failure ? e4.message : "The server does not answer.";
  }
}
function carry(at2, time) {
  if (at2 === null) return now();
  take();
  move({ ...freeze(focus.peek(), time), at: at2, time, wanted: "" }, "learn");
}
function now() {
  const s4 = shown.peek();
  take();
  back();
  move({ at: null, time: null, wanted: "", last: s4 ? Math.round((s4.to - s4.from) / 1e3) * 1e3 : hour, from: 0, to: 0 });
}
x2(() => {
  const f5 = focus.value, unknown2 = f5.wanted || (f5.at !== null && f5.time === null ? `seq:${f5.at}` : "");
  void renewed.value;
  if (!unknown2 || !whole2.value) return;
  const still = () => {
    const g5 = focus.peek();
    return g5.cluster === f5.cluster && g5.wanted === f5.wanted && g5.at === f5.at;
  };
  void resolve(unknown2).then(
    (p5) => {
      if (still()) move({ at: p5.seq, time: p5.time, wanted: "", ...freeze(focus.peek(), p5.time) }, "learn");
    },
    (e4) => {
      if (still()) unresolved(e4);
    }
  );
});
function unresolved(e4) {
  if (!(e4 instanceof Failure) || locked.peek()) return;
  announced.value = e4.message;
  move({ at: null, time: null, wanted: "" }, "learn");
}
var waitingSteps = 10;
var chain2 = -1;
var waiting = 0;
var walks = Promise.resolve();
function walk(direction, scope) {
  if (chain2 !== turn) {
    chain2 = take();
    walks = Promise.resolve();
    waiting = 0;
  }
  if (waiting === waitingSteps) return;
  waiting++;
  const mine = chain2;
  walks = walks.then(async () => {
    if (mine === turn) await stride(mine, direction, scope);
    if (mine === chain2) waiting--;
  });
}
async function stride(mine, direction, scope) {
  const f5 = focus.peek(), seq = f5.at ?? head.peek()?.seq, about = scope ?? (f5.uid ? "object" : "cluster");
  if (seq === void 0 || f5.at === null && direction === "next") return;
  const uid2 = about === "cluster" ? void 0 : f5.uid, whose = about === "cluster" ? {} : { namespace: void 0, resource: void 0, name: void 0 };
  try {
    const found = await find({ ...filterParams(), ...whose, direction, scope: about, uid: uid2 }, seq);
    if (mine !== turn) return;
    if (found.seq === null) {
      announced.value = direction === "next" ? "No later change." : "No earlier change.";
      return;
    }
    const other = about !== "object" && found.object ? of(found.object) : {};
    arrive(found.seq, found.time, other);
  } catch (e4) {
    if (mine === turn) announced.value = e4 instanceof Failure ? e4.message : "";
  }
}
async function find(params, seq) {
  for (let from = seq; ; ) {
    const found = await get("step", { ...params, seq: from });
    if (found.seq !== null || !found.next) return found;
    from = found.next;
  }
}

// src/paint.ts
var names2 = ["ink", "faint", "rule", "paper", "accent", "hatch", "ok", "progress", "bad", "gone", "unknown"];
var classNames = ["change", "added", "deleted", "status", "event", "sync", "heartbeat"];
var palette = y3(read3());
function read3() {
  const style = getComputedStyle(document.documentElement), of2 = (name) => style.getPropertyValue(`--${name}`).trim() || "#888";
  return { ...Object.fromEntries(names2.map((n3) => [n3, of2(n3)])), class: Object.fromEntries(classNames.map((n3) => [n3, of2(`c-${n3}`)])) };
}
var theme = y3(stored() || "auto");
function stored() {
  try {
    return localStorage.getItem("kuberewind.theme") ?? "";
  } catch {
    return "";
  }
}
function setTheme(to) {
  theme.value = to;
  document.documentElement.dataset.theme = to;
  try {
    localStorage.setItem("kuberewind.theme", to);
  } catch {
  }
  palette.value = read3();
}
document.documentElement.dataset.theme = theme.peek();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  palette.value = read3();
});
addEventListener("load", () => {
  palette.value = read3();
});
var Scale = class {
  constructor(from, to, width2) {
    this.from = from;
    this.to = to;
    this.width = width2;
  }
  from;
  to;
  width;
  x(ms) {
    return (ms - this.from) / (this.to - this.from) * this.width;
  }
  ms(x3) {
    return this.from + x3 / this.width * (this.to - this.from);
  }
};
function size(canvas, width2, height2) {
  const ratio = devicePixelRatio || 1, w5 = Math.round(width2 * ratio), h5 = Math.round(height2 * ratio);
  if (canvas.width !== w5 || canvas.height !== h5) {
    canvas.width = w5;
    canvas.height = h5;
    canvas.style.width = `${width2}px`;
    canvas.style.height = `${height2}px`;
  }
  const c4 = canvas.getContext("2d", { alpha: false });
  c4.setTransform(ratio, 0, 0, ratio, 0, 0);
  return c4;
}
var font = (px, weight = 400) => `${weight} ${px}px system-ui, sans-serif`;
var stamps = /* @__PURE__ */ new Map();
var hatching = null;
var stampsOf = null;
var stampsAt = 0;
var mostStamps = 2e3;
function renew(p5, ratio) {
  if (stampsOf === p5 && stampsAt === ratio && stamps.size < mostStamps) return;
  [stamps, hatching, stampsOf, stampsAt] = [/* @__PURE__ */ new Map(), null, p5, ratio];
}
function drawnOnce(width2, height2, ratio, draw) {
  const canvas = new OffscreenCanvas(width2, height2), c4 = canvas.getContext("2d");
  c4.scale(ratio, ratio);
  draw(c4);
  return canvas.transferToImageBitmap();
}
function stamp(c4, key, x3, y5, width2, height2, p5, draw) {
  const ratio = devicePixelRatio || 1;
  renew(p5, ratio);
  let image = stamps.get(key);
  if (!image) stamps.set(key, image = drawnOnce(Math.ceil(width2 * ratio), Math.ceil(height2 * ratio), ratio, draw));
  const whole3 = (at2) => Math.round(at2 * ratio) / ratio;
  c4.drawImage(image, whole3(x3 - width2 / 2), whole3(y5), image.width / ratio, image.height / ratio);
}
var hatchStep = 7;
function hatch(c4, x3, y5, w5, h5, p5) {
  const ratio = devicePixelRatio || 1;
  renew(p5, ratio);
  if (!hatching) {
    const pixels = Math.round(hatchStep * ratio), step2 = pixels / ratio;
    const tile = drawnOnce(pixels, pixels, ratio, (t4) => {
      t4.globalAlpha = 0.18;
      t4.fillStyle = p5.hatch;
      t4.fillRect(0, 0, step2, step2);
      t4.globalAlpha = 0.75;
      t4.strokeStyle = p5.hatch;
      t4.beginPath();
      for (let at2 = 0; at2 <= 2 * step2; at2 += step2) {
        t4.moveTo(at2 - 2 * step2, 2 * step2);
        t4.lineTo(at2 + step2, -step2);
      }
      t4.stroke();
    });
    hatching = c4.createPattern(tile, "repeat");
    hatching.setTransform(new DOMMatrix().scale(1 / ratio));
  }
  c4.fillStyle = hatching;
  c4.fillRect(x3, y5, Math.max(w5, 2), h5);
}
var widths2 = /* @__PURE__ */ new Map();
function wide(c4, text, of2) {
  const key = of2 + text;
  let known = widths2.get(key);
  if (known === void 0) {
    if (widths2.size > 10 * mostStamps) widths2.clear();
    widths2.set(key, known = c4.measureText(text).width);
  }
  return known;
}
function stretch(i4, s4) {
  const end2 = i4.to ?? Infinity, point = end2 === i4.from;
  if (point ? end2 < s4.from || end2 > s4.to : end2 <= s4.from || i4.from >= s4.to) return null;
  const from = Math.max(0, s4.x(i4.from)), to = Math.min(s4.width, s4.x(end2));
  return { x: from, w: Math.max(2, to - from) };
}
function clip(c4, text, width2, of2) {
  if (wide(c4, text, of2) <= width2) return text;
  let n3 = text.length;
  while (n3 > 1 && wide(c4, text.slice(0, n3) + "…", of2) > width2) n3 = Math.floor(n3 * 0.9);
  return n3 > 1 ? text.slice(0, n3) + "…" : "";
}
var drawn2 = { strip: [], density: [], marks: [], bars: [], hatched: [], merged: 0, frames: [] };
var unhatch = (view) => {
  drawn2.hatched = drawn2.hatched.filter((h5) => h5.view !== view);
};
function hatched(view, i4, streams, lane) {
  drawn2.hatched.push({ view, lane, from: i4.from, to: i4.to, kind: i4.kind, streams });
}
function frame(began) {
  drawn2.frames.push(performance.now() - began);
  if (drawn2.frames.length > 600) drawn2.frames.shift();
}

// src/density.ts
var made = /* @__PURE__ */ new WeakMap();
function bars(s4) {
  const known = made.get(s4);
  if (known) return known;
  const counts = s4.counts.map((c4) => Float64Array.from(c4)), n3 = counts.reduce((most3, c4) => Math.max(most3, c4.length), 0), total = new Float64Array(n3);
  for (const c4 of counts) for (let i4 = 0; i4 < c4.length; i4++) total[i4] = (total[i4] ?? 0) + (c4[i4] ?? 0);
  const b3 = { from: s4.from, stepMs: s4.stepMs, classes: s4.classes, counts, total, most: total.reduce((most3, v4) => Math.max(most3, v4), 0) };
  made.set(s4, b3);
  return b3;
}
var older = (s4) => Object.values(s4?.before ?? {}).reduce((a5, b3) => a5 + b3, 0);
function at(b3, ms) {
  const i4 = Math.floor((ms - b3.from) / b3.stepMs);
  if (i4 < 0 || i4 >= b3.total.length) return null;
  const parts = b3.classes.map((c4, k4) => [c4, b3.counts[k4]?.[i4] ?? 0]).filter(([, n3]) => n3 > 0);
  return { from: b3.from + i4 * b3.stepMs, to: b3.from + (i4 + 1) * b3.stepMs, total: b3.total[i4] ?? 0, parts };
}
function paintBars(c4, b3, s4, y5, height2, p5, view) {
  const list3 = [], scale2 = b3.most > 0 ? (height2 - 2) / Math.sqrt(b3.most) : 0;
  for (let i4 = 0; i4 < b3.total.length; i4++) {
    const total = b3.total[i4] ?? 0, from = b3.from + i4 * b3.stepMs, x0 = s4.x(from), x1 = s4.x(from + b3.stepMs);
    if (total === 0 || x1 < 0 || x0 > s4.width) continue;
    paintBar(c4, b3, i4, x0, Math.max(1, x1 - x0 - (x1 - x0 > 3 ? 1 : 0)), y5 + height2, Math.max(2, Math.sqrt(total) * scale2), p5);
    list3.push({ from, to: from + b3.stepMs, counts: Object.fromEntries(b3.classes.map((k4, n3) => [k4, b3.counts[n3]?.[i4] ?? 0])) });
  }
  drawn2[view] = list3;
}
function paintBar(c4, b3, i4, x3, w5, bottom, height2, p5) {
  const total = b3.total[i4] ?? 1;
  for (let k4 = 0, y5 = bottom; k4 < b3.classes.length; k4++) {
    const n3 = b3.counts[k4]?.[i4] ?? 0;
    if (n3 === 0) continue;
    const h5 = Math.max(1, n3 / total * height2);
    c4.fillStyle = p5.class[b3.classes[k4] ?? ""] ?? p5.faint;
    c4.fillRect(x3, y5 - h5, w5, h5);
    y5 -= h5;
  }
}
var kindText = { gap: "gap", pause: "pause", pruned: "pruned", estimated: "times estimated", clockstep: "clock step", unread: "not counted yet", before: "before the record" };
function paintIncomplete(c4, all3, s4, y5, height2, p5, view) {
  unhatch(view);
  for (const g5 of grouped2(all3.filter((i4) => stretch(i4, s4) !== null))) {
    const { x: x3, w: w5 } = stretch(g5.one, s4), part = g5.streams.length > 0 ? height2 * 0.45 : height2;
    hatch(c4, x3, y5 + height2 - part, w5, part, p5);
    hatched(view, g5.one, g5.streams);
    label(c4, g5, x3, w5, y5 + height2 - part, p5);
  }
}
function grouped2(all3) {
  const found = /* @__PURE__ */ new Map();
  for (const i4 of all3) {
    if (i4.kind === "before" && !i4.stream) continue;
    const key = [i4.kind, i4.cause, i4.stream ? "" : i4.text, Math.round(i4.from / 1e3), i4.to === null ? "" : Math.round(i4.to / 1e3)].join(" "), g5 = found.get(key) ?? { one: i4, streams: [] };
    if (i4.stream) g5.streams.push(i4.stream);
    found.set(key, g5);
  }
  return [...found.values()];
}
var labels = font(10, 600);
function label(c4, g5, x3, w5, y5, p5) {
  if (w5 < 34) return;
  c4.font = labels;
  const text = clip(c4, [kindText[g5.one.kind] ?? g5.one.kind, g5.streams.length > 1 ? `of ${g5.streams.length} resources` : g5.streams[0] ?? ""].filter(Boolean).join(" "), w5 - 8, labels);
  if (!text) return;
  const width2 = wide(c4, text, labels);
  c4.fillStyle = p5.paper;
  c4.globalAlpha = 0.8;
  c4.fillRect(x3 + 2, y5 + 2, width2 + 4, 13);
  c4.globalAlpha = 1;
  c4.fillStyle = p5.ink;
  c4.textBaseline = "top";
  c4.fillText(text, x3 + 4, y5 + 3);
}

// vendor/preact/jsx-runtime/dist/jsxRuntime.mjs
var f4 = /* @__PURE__ */ Symbol.for("pv");
var o4 = 0;
function a4(t4, e4, n3, u4, a5, i4) {
  e4 || (e4 = {});
  var c4, l4, p5 = e4;
  if ("ref" in p5 && "function" != typeof t4) for (l4 in p5 = {}, e4) "ref" == l4 ? c4 = e4[l4] : p5[l4] = e4[l4];
  var s4 = { type: t4, props: p5, key: n3, ref: c4, __k: null, __: null, __b: 0, __e: null, __c: null, constructor: f4, __v: --o4, __i: -1, __u: 0 };
  return (a5 || i4) && (s4.__source = a5, s4.__self = i4), n.vnode && n.vnode(s4), s4;
}

// src/parts.tsx
var named = (r4) => `${r4.namespace ? `${r4.namespace}/` : ""}${r4.name}`;
function Link({ to }) {
  return /* @__PURE__ */ a4("button", { type: "button", class: "link", onClick: () => move(of(to)), children: [
    /* @__PURE__ */ a4("span", { class: "kind", children: to.kind }),
    " ",
    named(to)
  ] });
}
function When({ seq, time, more }) {
  return /* @__PURE__ */ a4("button", { type: "button", class: "when", title: `${full(time)}, seq:${seq}`, onClick: () => look2(seq, time, more ? of(more) : {}), children: brief(time, whole2.value?.to ?? time) });
}
function Class({ of: name }) {
  return /* @__PURE__ */ a4("span", { class: `class c-${/^[a-z]+$/.test(name) ? name : "change"}`, children: name });
}
function Writer({ manager, evidence, hint: hint2 }) {
  if (manager) return /* @__PURE__ */ a4("span", { class: "writer", title: evidence ? `proved: ${evidence}` : "proved by the version", children: [
    "by ",
    /* @__PURE__ */ a4("b", { children: manager })
  ] });
  return /* @__PURE__ */ a4("span", { class: "writer unproved", title: evidence ?? "", children: hint2 ? `writer not proved; ${hint2}` : "writer not proved" });
}
function Command({ text }) {
  const done = useSignal(false);
  if (!text) return null;
  const copy2 = () => void navigator.clipboard.writeText(text).then(() => {
    done.value = true;
    setTimeout(() => {
      done.value = false;
    }, 1500);
  }, () => void 0);
  return /* @__PURE__ */ a4("p", { class: "command", children: [
    /* @__PURE__ */ a4("code", { children: text }),
    /* @__PURE__ */ a4("button", { type: "button", "data-copy": text, onClick: copy2, children: done.value ? "copied" : "copy" })
  ] });
}
function value(v4) {
  if (v4 === void 0) return "";
  return typeof v4 === "string" ? v4 : JSON.stringify(v4, null, typeof v4 === "object" && JSON.stringify(v4).length > 60 ? 2 : 0);
}
var most2 = 12;
function Diff({ changes: changes2, short: short3 = false }) {
  const all3 = useSignal(false), limit = short3 ? 3 : most2 * 5, seen = all3.value ? changes2 : changes2.slice(0, limit), rest2 = changes2.length - seen.length;
  return /* @__PURE__ */ a4("ul", { class: `diff${short3 ? " short" : ""}`, children: [
    seen.map((c4, i4) => /* @__PURE__ */ a4("li", { children: [
      /* @__PURE__ */ a4(Path, { op: c4.op, path: c4.from ? `${c4.from} → ${c4.path}` : c4.field || c4.path }),
      c4.old !== void 0 ? /* @__PURE__ */ a4(Side, { is: "old", of: c4.old }) : null,
      c4.new !== void 0 ? /* @__PURE__ */ a4(Side, { is: "new", of: c4.new }) : null
    ] }, i4)),
    rest2 > 0 ? /* @__PURE__ */ a4("li", { children: /* @__PURE__ */ a4("button", { type: "button", class: "more", onClick: (e4) => {
      e4.stopPropagation();
      all3.value = true;
    }, children: [
      count(rest2),
      " more ",
      rest2 === 1 ? "path" : "paths"
    ] }) }) : null
  ] });
}
function Path({ op, path: path2 }) {
  return /* @__PURE__ */ a4("span", { class: "path", children: [
    /* @__PURE__ */ a4("span", { class: `op op-${/^[a-z]+$/.test(op) ? op : "replace"}`, children: { add: "+", remove: "−", replace: "~", move: "→", reorder: "⇅" }[op] ?? op }),
    path2 || "/"
  ] });
}
function Side({ is, of: v4 }) {
  const all3 = useSignal(false), text = value(v4), lines2 = text.split("\n"), cut = !all3.value && lines2.length > most2;
  const seen = cut ? lines2.slice(0, most2).join("\n") : text;
  return /* @__PURE__ */ a4("span", { class: `side ${is}`, children: [
    /* @__PURE__ */ a4("span", { class: "unseen", children: [
      is,
      ": "
    ] }),
    /* @__PURE__ */ a4("span", { class: "value", children: seen === "" ? '""' : seen }),
    cut ? /* @__PURE__ */ a4("button", { type: "button", class: "more", onClick: (e4) => {
      e4.stopPropagation();
      all3.value = true;
    }, children: [
      count(lines2.length - most2),
      " more lines"
    ] }) : null
  ] });
}
function Holes({ of: holes }) {
  const groups = grouped2(holes);
  if (groups.length === 0) return null;
  return /* @__PURE__ */ a4("ul", { class: "holes", children: groups.map((g5, i4) => /* @__PURE__ */ a4(Hole, { g: g5 }, i4)) });
}
function Hole({ g: g5 }) {
  const { one, streams } = g5, end2 = whole2.value?.to ?? one.from, some = streams.length > 1;
  return /* @__PURE__ */ a4("li", { children: [
    /* @__PURE__ */ a4("span", { class: "hatched", "aria-hidden": "true" }),
    some ? `${count(streams.length)} resources are not complete (${one.cause || one.kind}).` : one.text || `${one.kind} ${streams[0] ?? ""}`,
    " ",
    /* @__PURE__ */ a4("span", { class: "faint", children: [
      brief(one.from, end2),
      " to ",
      one.to === null ? "now" : brief(one.to, end2)
    ] }),
    some ? /* @__PURE__ */ a4("details", { children: [
      /* @__PURE__ */ a4("summary", { children: "which" }),
      streams.join(", ")
    ] }) : null
  ] });
}
function Section({ title, note, children }) {
  return /* @__PURE__ */ a4("section", { class: "part", children: [
    /* @__PURE__ */ a4("h2", { children: [
      title,
      note !== void 0 ? /* @__PURE__ */ a4("span", { class: "note", children: note }) : null
    ] }),
    children
  ] });
}

// src/session.ts
var place2 = "kuberewind.session";
var driven = y3(kept2());
var state = y3(null);
var refusal = y3("");
var ended = y3("");
var following = y3(false);
var sessions = y3(null);
function kept2() {
  try {
    return sessionStorage.getItem(place2) ?? "";
  } catch {
    return "";
  }
}
function keep2(name) {
  driven.value = name;
  try {
    sessionStorage.setItem(place2, name);
  } catch {
  }
}
var uid = () => meta.answer.peek()?.cluster ?? "";
var path = (name) => `/session/v1${name && `/${encodeURIComponent(name)}`}?${new URLSearchParams({ cluster: uid() })}`;
var sentence = (e4) => e4 instanceof Failure ? e4.message : "The server does not answer.";
var instant2 = O(() => focus.value.wanted ? "" : focus.value.at === null ? "now" : `seq:${focus.value.at}`);
var aim = y3(null);
var stands = y3(null);
var farBehind = 6e4;
var elsewhere = O(() => {
  const s4 = state.value, end2 = head.value?.time;
  if (!s4 || aim.value === null || setting.value) return false;
  if (aim.value === "now") return !s4.playing || end2 !== void 0 && end2 - Date.parse(s4.time) > farBehind;
  return s4.playing || s4.seq !== stands.value;
});
var setting = y3(false);
var turn2 = 0;
x2(() => {
  const at2 = instant2.value;
  if (!driven.value || !at2 || aim.value === null || at2 === aim.value || ended.value) return;
  aim.value = at2;
  void follow2();
});
async function follow2() {
  if (setting.peek()) return;
  setting.value = true;
  for (let at2 = null; driven.peek() && aim.peek() && at2 !== aim.peek(); ) {
    at2 = aim.peek();
    await put(driven.peek(), at2);
  }
  setting.value = false;
}
async function put(name, at2) {
  const mine = ++turn2;
  try {
    const end2 = at2 === "now", { body, made: made2 } = await order("PUT", path(name), { cluster: uid(), at: at2, playing: end2, ...end2 ? { speed: 1 } : {} });
    if (mine !== turn2) return false;
    r3(() => {
      [state.value, stands.value, refusal.value, ended.value] = [body, end2 ? null : body.seq, "", ""];
      if (made2 && aim.peek() !== null && driven.peek()) announced.value = `Session ${name} had ended, and was made again.`;
    });
    return true;
  } catch (e4) {
    if (mine === turn2) r3(() => {
      announced.value = refusal.value = sentence(e4);
      stands.value = null;
    });
    return false;
  } finally {
    if (mine === turn2) turn2++;
  }
}
function set() {
  aim.value = instant2.peek() || aim.peek();
  void follow2();
}
async function make(name) {
  await list();
  if (sessions.peek()?.some((s4) => s4.name === name)) {
    refusal.value = `There is a session ${name} already: drive it, or choose another name.`;
    return;
  }
  const at2 = instant2.peek() || "now";
  if (!await put(name, at2)) return;
  r3(() => {
    aim.value = at2;
    keep2(name);
  });
}
function drive(s4) {
  turn2++;
  r3(() => {
    refusal.value = ended.value = "";
    state.value = s4;
    go(s4);
    keep2(s4.name);
  });
}
function go(s4) {
  const end2 = s4.playing && s4.atEnd;
  r3(() => {
    [aim.value, stands.value] = end2 ? ["now", null] : [`seq:${s4.seq}`, s4.seq];
    carry(end2 ? null : s4.seq, Date.parse(s4.time));
  });
}
function stopDriving() {
  turn2++;
  r3(() => {
    keep2("");
    aim.value = stands.value = state.value = null;
    refusal.value = ended.value = "";
    following.value = false;
  });
}
async function end(name) {
  try {
    await order("DELETE", path(name));
    if (driven.peek() === name) stopDriving();
    refusal.value = "";
  } catch (e4) {
    refusal.value = sentence(e4);
  }
  await list();
}
async function list() {
  try {
    const { body } = await order("GET", path(""));
    sessions.value = body.sessions.filter((s4) => s4.cluster === uid());
  } catch (e4) {
    refusal.value = sentence(e4);
  }
}
var every2 = 1e3;
async function watch() {
  for (; ; ) {
    const seen = document.visibilityState === "visible" && admitted.peek() && !locked.peek() && uid() !== "";
    if (seen && driven.peek()) await read4();
    if (seen && focus.peek().panel === "session" && !driven.peek()) await list();
    await new Promise((done) => setTimeout(done, every2));
  }
}
async function read4() {
  const mine = turn2, name = driven.peek();
  try {
    const { body } = await order("GET", path(name));
    if (mine !== turn2) return;
    if (body.cluster !== uid()) stopDriving();
    else learn2(body);
  } catch (e4) {
    if (mine === turn2 && e4 instanceof Failure && e4.code === 404) r3(() => {
      [ended.value, state.value] = [e4.message, null];
    });
  }
}
function learn2(s4) {
  r3(() => {
    [state.value, ended.value] = [s4, ""];
    if (aim.peek() === null) [aim.value, stands.value] = [instant2.peek() || null, focus.peek().at];
    if (following.peek() && elsewhere.value) go(s4);
  });
}
var was = cluster.peek();
x2(() => {
  if (cluster.value === was) return;
  was = cluster.value;
  sessions.value = null;
  stopDriving();
});

// src/sessions.tsx
var timeOf = (s4) => {
  const ms = Date.parse(s4.time);
  return `${brief(ms, whole2.value?.to ?? ms)} ${zone(ms)}, seq:${s4.seq}`;
};
function clockOf(s4) {
  if (s4.problem) return `stands still, because the record cannot be read: ${s4.problem}`;
  if (!s4.playing) return "stands";
  return s4.atEnd ? "waits for the record to grow" : `plays at ${s4.speed}×`;
}
var useOf = (s4) => s4.watches === 0 ? "no client watches" : s4.watches === 1 ? "1 watch is open" : `${count(s4.watches)} watches are open`;
function lines(name) {
  const m5 = meta.answer.value, several = (m5?.clusters.length ?? 0) > 1, cluster2 = m5?.clusters.find((c4) => c4.uid === m5.cluster)?.name ?? "";
  if (location.protocol === "https:") return [`replay kubeconfig --own-credentials --server https://HOST:PORT/clusters/${m5?.cluster ?? "UID"} --session ${name} -o past.kubeconfig`];
  const replay = `replay exec${several ? ` --cluster ${quoted(cluster2)}` : ""} --session ${name} --`;
  return [`${replay} k9s`, `${replay} kubectl get pods -A`];
}
var quoted = (word) => /^[\w.:/=,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
function Sessions() {
  return driven.value ? /* @__PURE__ */ a4(Driven, { name: driven.value }) : /* @__PURE__ */ a4(Choice, {});
}
function Refusal() {
  return refusal.value ? /* @__PURE__ */ a4("p", { class: "error", role: "alert", children: refusal.value }) : null;
}
function Driven({ name }) {
  const s4 = state.value, gone = ended.value;
  return /* @__PURE__ */ a4(Section, { title: `Session ${name}`, children: [
    gone ? /* @__PURE__ */ a4("p", { class: "error", role: "alert", children: gone }) : /* @__PURE__ */ a4("p", { children: "The cursor sets its clock. If you move to another instant, clients of the session show the cluster at that instant. A drag sets the clock when you release it." }),
    /* @__PURE__ */ a4(Refusal, {}),
    s4 ? /* @__PURE__ */ a4("p", { class: "session-clock", children: [
      "Its clock: ",
      /* @__PURE__ */ a4("b", { children: timeOf(s4) }),
      ". It ",
      clockOf(s4),
      ". ",
      /* @__PURE__ */ a4("span", { class: "faint", children: useOf(s4) })
    ] }) : null,
    s4?.notes?.map((n3) => /* @__PURE__ */ a4("p", { class: "faint", children: n3 }, n3)),
    elsewhere.value && s4 ? /* @__PURE__ */ a4("p", { class: "elsewhere", children: [
      "The clock is not where the page is. ",
      /* @__PURE__ */ a4("button", { type: "button", onClick: () => go(s4), children: "go to the clock" }),
      " ",
      /* @__PURE__ */ a4("button", { type: "button", onClick: set, children: "set it to this instant" })
    ] }) : null,
    gone ? null : /* @__PURE__ */ a4("label", { class: "follow", children: [
      /* @__PURE__ */ a4("input", { type: "checkbox", checked: following.value, onChange: (e4) => {
        following.value = e4.currentTarget.checked;
      } }),
      " go along if another tool moves the clock"
    ] }),
    gone ? null : /* @__PURE__ */ a4($, { children: [
      /* @__PURE__ */ a4("h3", { children: "In a terminal on the server's machine" }),
      lines(name).map((l4) => /* @__PURE__ */ a4(Command, { text: l4 }, l4))
    ] }),
    /* @__PURE__ */ a4("p", { class: "session-buttons", children: [
      gone ? /* @__PURE__ */ a4("button", { type: "button", onClick: () => void make(name), children: "make it again, at this instant" }) : null,
      /* @__PURE__ */ a4("button", { type: "button", onClick: stopDriving, children: "let go of it" }),
      gone ? null : /* @__PURE__ */ a4("button", { type: "button", onClick: () => void end(name), children: "end it" })
    ] }),
    gone ? null : /* @__PURE__ */ a4("p", { class: "faint", children: "If you let go, the session stays as it is, and ends 30 minutes after its last request. If you end it, its clients get an error." })
  ] });
}
function Choice() {
  const name = useSignal("page"), all3 = sessions.value;
  A2(() => {
    void list();
  }, []);
  return /* @__PURE__ */ a4($, { children: [
    /* @__PURE__ */ a4(Section, { title: "Show this instant in kubectl and k9s", children: [
      /* @__PURE__ */ a4("p", { children: "A session is a clock that the page and other programs share. Make one, and point kubectl or k9s at it. They show the cluster at the instant that you look at here." }),
      /* @__PURE__ */ a4("form", { class: "session-new", onSubmit: (e4) => {
        e4.preventDefault();
        void make(name.value.trim());
      }, children: [
        /* @__PURE__ */ a4("label", { children: [
          "name ",
          /* @__PURE__ */ a4("input", { value: name.value, onInput: (e4) => {
            name.value = e4.currentTarget.value;
          }, autocomplete: "off", maxLength: 63 })
        ] }),
        " ",
        /* @__PURE__ */ a4("button", { type: "submit", disabled: name.value.trim() === "", children: "make a session at this instant" })
      ] }),
      /* @__PURE__ */ a4(Refusal, {})
    ] }),
    /* @__PURE__ */ a4(Section, { title: "Sessions of this cluster", note: all3 ? count(all3.length) : void 0, children: [
      all3 === null ? /* @__PURE__ */ a4("p", { class: "busy", children: "The server is asked…" }) : null,
      all3?.length === 0 ? /* @__PURE__ */ a4("p", { class: "faint", children: "None." }) : null,
      /* @__PURE__ */ a4("ul", { class: "session-list", children: all3?.map((s4) => /* @__PURE__ */ a4("li", { children: [
        /* @__PURE__ */ a4("b", { children: s4.name }),
        " ",
        /* @__PURE__ */ a4("span", { children: timeOf(s4) }),
        " ",
        /* @__PURE__ */ a4("span", { class: "faint", children: [
          clockOf(s4),
          ", ",
          useOf(s4),
          s4.owner ? `, made by ${s4.owner}` : ""
        ] }),
        /* @__PURE__ */ a4("span", { class: "session-buttons", children: [
          /* @__PURE__ */ a4("button", { type: "button", "aria-label": `Drive session ${s4.name}`, onClick: () => drive(s4), children: "drive it" }),
          " ",
          /* @__PURE__ */ a4("button", { type: "button", "aria-label": `End session ${s4.name}`, onClick: () => void end(s4.name), children: "end it" })
        ] })
      ] }, s4.name)) }),
      (all3?.length ?? 0) > 0 ? /* @__PURE__ */ a4("p", { class: "faint", children: "The page goes to the clock of the session that you drive. Nothing moves before you move the cursor." }) : null
    ] })
  ] });
}
function Driving() {
  if (!driven.value) return null;
  const text = ended.value ? `session ${driven.value} has ended` : elsewhere.value ? `session ${driven.value} is elsewhere` : `session ${driven.value}`;
  return /* @__PURE__ */ a4("button", { type: "button", class: `badge driving ${ended.value || elsewhere.value ? "warn" : ""}`, title: ended.value || elsewhere.value ? "Open the session" : "The cursor sets the clock of this session: open it", onClick: () => move({ panel: "session" }), children: text });
}

// src/strip.tsx
var height = 76;
var ruler = 18;
var room = 0.012;
var stripScale = () => {
  const w5 = whole2.value, width2 = stripWidth.value;
  if (!w5 || width2 === 0) return null;
  const pad = (w5.to - w5.from) * room;
  return new Scale(w5.from - pad, w5.to + pad, width2);
};
var selected = y3(null);
function paint(canvas) {
  const s4 = stripScale(), p5 = palette.value;
  if (!s4) return;
  const began = performance.now(), c4 = size(canvas, s4.width, height), body = height - ruler;
  c4.fillStyle = p5.paper;
  c4.fillRect(0, 0, s4.width, height);
  const answer = strip.answer.value;
  if (answer) paintBars(c4, bars(answer), s4, 0, body, p5, "strip");
  const within2 = (answer?.incomplete ?? []).filter((i4) => i4.to === null || i4.to > (whole2.peek()?.from ?? 0));
  paintIncomplete(c4, within2, s4, 0, body, p5, "strip");
  paintEdges(c4, s4, body, p5);
  paintRuler(c4, s4, body, p5);
  paintWindow(c4, s4, body, p5);
  frame(began);
}
function paintEdges(c4, s4, body, p5) {
  const w5 = whole2.value;
  if (!w5) return;
  c4.fillStyle = p5.rule;
  c4.globalAlpha = 0.5;
  c4.fillRect(0, 0, s4.x(w5.from), body);
  c4.fillRect(s4.x(w5.to), 0, s4.width - s4.x(w5.to), body);
  c4.globalAlpha = 1;
  c4.fillStyle = p5.faint;
  c4.fillRect(s4.x(w5.from) - 1, 0, 1, body);
  c4.fillRect(s4.x(w5.to), 0, 1, body);
}
function paintRuler(c4, s4, y5, p5) {
  c4.fillStyle = p5.rule;
  c4.fillRect(0, y5, s4.width, 1);
  c4.textBaseline = "top";
  let free = 0;
  for (const m5 of marks(s4.from, s4.to, Math.max(2, s4.width / 86))) {
    const x3 = Math.round(s4.x(m5.ms));
    c4.fillStyle = p5.rule;
    c4.fillRect(x3, y5, 1, 5);
    c4.font = font(11, m5.strong ? 600 : 400);
    const width2 = c4.measureText(m5.label).width;
    if (x3 + 4 < free || x3 + 4 + width2 > s4.width) continue;
    c4.fillStyle = m5.strong ? p5.ink : p5.faint;
    c4.fillText(m5.label, x3 + 4, y5 + 4);
    free = x3 + width2 + 12;
  }
}
function paintWindow(c4, s4, body, p5) {
  const seen = selected.value ?? shown.value;
  if (seen) {
    const x3 = Math.max(0, s4.x(seen.from)), w5 = Math.max(3, Math.min(s4.width, s4.x(seen.to)) - x3);
    c4.fillStyle = p5.accent;
    c4.globalAlpha = 0.13;
    c4.fillRect(x3, 0, w5, body);
    c4.globalAlpha = 1;
    c4.fillRect(x3, body - 2, w5, 2);
    c4.fillRect(x3, 0, w5, 2);
    c4.fillRect(x3, 0, 1, body);
    c4.fillRect(x3 + w5 - 1, 0, 1, body);
  }
  const time = scrub.value ?? cursor.value;
  if (time !== null) paintCursor(c4, s4.x(time), 0, height, p5);
}
function paintCursor(c4, x3, y5, h5, p5) {
  if (x3 < -1) return;
  c4.fillStyle = p5.paper;
  c4.fillRect(Math.round(x3) - 2, y5, 4, h5);
  c4.fillStyle = p5.bad;
  c4.fillRect(Math.round(x3) - 1, y5, 2, h5);
}
function usePainted(paintIt) {
  const ref = T2(null);
  A2(() => {
    let wanted = 0;
    const again2 = y3(0);
    const stop = x2(() => {
      void again2.value;
      if (ref.current) paintIt(ref.current);
    });
    const observer = new ResizeObserver(() => {
      cancelAnimationFrame(wanted);
      wanted = requestAnimationFrame(() => {
        again2.value++;
      });
    });
    if (ref.current?.parentElement) observer.observe(ref.current.parentElement);
    return () => {
      stop();
      observer.disconnect();
      cancelAnimationFrame(wanted);
    };
  }, []);
  return ref;
}
function useWidth(width2, less = () => 0) {
  const ref = T2(null);
  A2(() => {
    const box = ref.current;
    if (!box) return void 0;
    const measure = () => {
      width2.value = Math.max(0, Math.floor(box.clientWidth - less()));
    };
    const observer = new ResizeObserver(measure);
    observer.observe(box);
    measure();
    return () => observer.disconnect();
  }, []);
  return ref;
}
function zoom(by, about) {
  const s4 = shown.peek();
  if (!s4) return;
  glide();
  move({ last: null, ...clamp({ from: about - (about - s4.from) * by, to: about + (s4.to - about) * by }) }, "glide");
}
function pan(ms) {
  const s4 = shown.peek();
  if (!s4) return;
  glide();
  move({ last: null, ...clamp({ from: s4.from + ms, to: s4.to + ms }) }, "glide");
}
var resting = 0;
function glide() {
  gliding.value = true;
  clearTimeout(resting);
  resting = setTimeout(rest, 150);
}
function rest() {
  const s4 = shown.peek();
  if (s4 && focus.peek().last === null) move(snap(s4), "learn");
  gliding.value = false;
}
function Strip() {
  const hover2 = useSignal(null), box = useWidth(stripWidth), canvas = usePainted(paint);
  const timeOf2 = (e4) => stripScale()?.ms(e4.clientX - (canvas.current?.getBoundingClientRect().left ?? 0)) ?? 0;
  const down = (e4) => {
    if (e4.button !== 0) return;
    canvas.current?.setPointerCapture(e4.pointerId);
    const ms = timeOf2(e4);
    if (e4.shiftKey) selected.value = { from: ms, to: ms };
    else scrub.value = ms;
  };
  const moved = (e4) => {
    const ms = timeOf2(e4);
    hover2.value = { x: e4.clientX, text: read5(ms) };
    if (selected.value) selected.value = { from: selected.value.from, to: ms };
    else if (scrub.value !== null && e4.buttons === 1) scrub.value = ms;
  };
  const up = () => {
    const range = selected.peek(), time = scrub.peek();
    selected.value = null;
    if (range && Math.abs(range.to - range.from) > 0) move({ last: null, ...snap(clamp({ from: Math.min(range.from, range.to), to: Math.max(range.from, range.to) })) });
    else if (time !== null) void lookAt(time);
  };
  const wheel = (e4) => {
    e4.preventDefault();
    zoom(Math.exp(e4.deltaY / 400), timeOf2(e4));
  };
  A2(() => {
    canvas.current?.addEventListener("wheel", wheel, { passive: false });
    return () => canvas.current?.removeEventListener("wheel", wheel);
  }, []);
  return /* @__PURE__ */ a4("section", { class: "strip", "aria-label": "All of the record", children: [
    /* @__PURE__ */ a4("div", { class: "strip-box", ref: box, children: /* @__PURE__ */ a4(
      "canvas",
      {
        ref: canvas,
        class: "strip-canvas",
        height,
        role: "img",
        "aria-label": spoken(),
        onPointerDown: down,
        onPointerMove: moved,
        onPointerUp: up,
        onPointerCancel: () => {
          scrub.value = null;
          selected.value = null;
        },
        onPointerLeave: () => {
          hover2.value = null;
        }
      }
    ) }),
    /* @__PURE__ */ a4("p", { class: "strip-note", children: [
      /* @__PURE__ */ a4("span", { class: "read", children: hover2.value?.text ?? spoken() }),
      strip.busy.value && strip.answer.value === null ? /* @__PURE__ */ a4("span", { class: "busy", children: "counting…" }) : null,
      strip.answer.value?.next && strip.answer.value.ahead?.text ? /* @__PURE__ */ a4("span", { class: "busy", children: strip.answer.value.ahead.text }) : null,
      strip.answer.value?.next ? /* @__PURE__ */ a4("span", { class: "busy", children: "not all is counted yet: what is not is hatched" }) : null,
      strip.failed.value && !strip.missing.value ? /* @__PURE__ */ a4("span", { class: "error", children: strip.failed.value }) : null
    ] })
  ] });
}
function read5(ms) {
  const answer = strip.answer.peek(), bar = answer && at(bars(answer), ms);
  const missing = (answer?.incomplete ?? []).find((i4) => ms >= i4.from && (i4.to === null || ms < i4.to));
  const parts = bar ? bar.parts.map(([c4, n3]) => `${count(n3)} ${c4}`).join(", ") || "nothing" : "outside of the record";
  return `${full(ms)} · ${parts}${bar ? ` in ${span(bar.to - bar.from)}` : ""}${missing ? ` · ${missing.text}` : ""}`;
}
function spoken() {
  const w5 = whole2.value, answer = strip.answer.value;
  if (!w5) return "The record is asked for.";
  const total = answer ? bars(answer).total.reduce((a5, b3) => a5 + b3, 0) : 0, holes = answer?.incomplete?.filter((i4) => i4.kind !== "before").length ?? 0;
  return `The record: ${full(w5.from)} to ${full(w5.to).slice(0, 10) === full(w5.from).slice(0, 10) ? clock(w5.to) : full(w5.to)} (${span(w5.to - w5.from)}), ${count(total)} ${total === 1 ? "change" : "changes"} shown${older(answer) > 0 ? `, ${count(older(answer))} dated before it began` : ""}${holes > 0 ? `, ${holes} ${holes === 1 ? "stretch is" : "stretches are"} not complete` : ", complete"}.`;
}

// src/bar.tsx
var widths3 = [["5m", 3e5], ["15m", 9e5], ["1h", 36e5], ["6h", 216e5], ["1d", 864e5], ["7d", 6048e5]];
function widen(ms) {
  const f5 = focus.peek(), at2 = cursor.peek() ?? whole2.peek()?.to ?? 0;
  if (f5.at === null) move({ last: ms, from: 0, to: 0 });
  else move({ last: null, from: at2 - ms * 0.7, to: at2 + ms * 0.3 });
}
function all2() {
  const w5 = whole2.peek();
  if (w5) move({ last: null, from: w5.from, to: w5.to + 1 });
}
function Bar({ help }) {
  const m5 = meta.answer.value, last2 = lastWidth.value, name = m5?.clusters.find((c4) => c4.uid === m5.cluster)?.name ?? "";
  return /* @__PURE__ */ a4("header", { class: "bar", children: [
    /* @__PURE__ */ a4("span", { class: "brand", title: m5?.cluster, children: [
      /* @__PURE__ */ a4("span", { class: "logo", "aria-hidden": "true", children: "◀◀" }),
      (m5?.clusters.length ?? 0) > 1 ? /* @__PURE__ */ a4("select", { "aria-label": "Cluster", value: cluster.value || m5?.cluster, onChange: (e4) => enter(e4.currentTarget.value), children: m5?.clusters.map((c4) => /* @__PURE__ */ a4("option", { value: c4.uid, children: c4.name || c4.uid }, c4.uid)) }) : /* @__PURE__ */ a4("b", { title: name, children: name || "kuberewind" })
    ] }),
    /* @__PURE__ */ a4(Instant, {}),
    /* @__PURE__ */ a4("span", { class: "group", role: "group", "aria-label": "Width of the window", children: [
      widths3.map(([label2, ms]) => /* @__PURE__ */ a4("button", { type: "button", "aria-pressed": last2 === ms, onClick: () => widen(ms), children: label2 }, label2)),
      /* @__PURE__ */ a4("button", { type: "button", onClick: all2, title: "All of the record (0)", children: "all" }),
      /* @__PURE__ */ a4("button", { type: "button", "aria-label": "Widen the window", title: "Widen (−)", onClick: () => middle(1.6), children: "−" }),
      /* @__PURE__ */ a4("button", { type: "button", "aria-label": "Narrow the window", title: "Narrow (+)", onClick: () => middle(0.6), children: "+" })
    ] }),
    /* @__PURE__ */ a4(Badges, {}),
    /* @__PURE__ */ a4("span", { class: "group end", children: [
      /* @__PURE__ */ a4("button", { type: "button", onClick: toggleLocal, title: "Labels in UTC or in local time (u)", children: local.value ? `local ${zone(cursor.value ?? head.value?.time ?? Date.now())}` : "UTC" }),
      /* @__PURE__ */ a4("button", { type: "button", onClick: () => setTheme(theme.value === "dark" ? "light" : theme.value === "light" ? "auto" : "dark"), title: "Dark, light, or as the system (t)", children: theme.value }),
      /* @__PURE__ */ a4("button", { type: "button", onClick: help, "aria-label": "Help: all keys", title: "All keys (?)", children: "?" })
    ] })
  ] });
}
function middle(by) {
  const s4 = shown.peek();
  if (s4) zoom(by, cursor.peek() ?? (live.peek() ? s4.to : (s4.from + s4.to) / 2));
}
function Instant() {
  const at2 = chosenAt.value, time = cursor.value, w5 = whole2.value;
  return /* @__PURE__ */ a4("span", { class: `instant ${at2 === null ? "live" : "past"}`, children: [
    /* @__PURE__ */ a4("button", { type: "button", "aria-label": "Previous change", title: "Previous change (←)", onClick: () => walk("previous"), children: "←" }),
    /* @__PURE__ */ a4("span", { class: "clock", role: "status", title: at2 === null ? "The end of the record" : `seq:${at2}`, children: at2 === null ? head.value ? /* @__PURE__ */ a4($, { children: [
      stopped.value ? "last commit" : "now",
      " ",
      /* @__PURE__ */ a4("small", { children: [
        full(head.value.time).slice(0, 19),
        " ",
        zone(head.value.time)
      ] })
    ] }) : "…" : time ? /* @__PURE__ */ a4($, { children: [
      brief(time, 0),
      " ",
      /* @__PURE__ */ a4("small", { children: [
        zone(time),
        ", seq:",
        at2,
        w5 ? `, ${span(w5.to - time)} before the end` : ""
      ] })
    ] }) : `seq:${at2}` }),
    /* @__PURE__ */ a4("button", { type: "button", "aria-label": "Next change", title: "Next change (→)", disabled: at2 === null, onClick: () => walk("next"), children: "→" }),
    /* @__PURE__ */ a4(GoTo, {}),
    at2 === null ? null : /* @__PURE__ */ a4("button", { type: "button", class: "to-now", onClick: now, title: "Back to the end of the record (n)", children: [
      stopped.value ? "end" : "now",
      fresh.value > 0 ? /* @__PURE__ */ a4("span", { class: "fresh", children: [
        count(fresh.value),
        " new"
      ] }) : null
    ] })
  ] });
}
function GoTo() {
  const wrong = useSignal("");
  const go2 = async (field) => {
    const text = field.value.trim();
    if (text === "") return;
    wrong.value = await lookAtTyped(text);
    if (wrong.peek() === "") {
      field.value = "";
      field.blur();
    }
  };
  return /* @__PURE__ */ a4("form", { class: "go-to", onSubmit: (e4) => {
    e4.preventDefault();
    void go2(e4.currentTarget.elements[0]);
  }, children: [
    /* @__PURE__ */ a4(
      "input",
      {
        id: "go-to",
        type: "text",
        placeholder: "03:12 @",
        autocomplete: "off",
        "aria-label": "Go to an instant",
        "aria-invalid": wrong.value !== "",
        title: "03:12, yesterday 14:05, 2026-11-24 18:45, 10m (ago), seq:7",
        onInput: () => {
          wrong.value = "";
        },
        onBlur: () => {
          wrong.value = "";
        }
      }
    ),
    wrong.value ? /* @__PURE__ */ a4("span", { class: "wrong", role: "alert", children: wrong.value }) : null
  ] });
}
var late2 = {
  stopped: "no recorder",
  starting: "the recorder begins",
  quiet: "nothing is committed",
  behind: "the recorder is behind"
};
function Badges() {
  const r4 = recording.value;
  return /* @__PURE__ */ a4("span", { class: "badges", role: "status", children: [
    away.value ? /* @__PURE__ */ a4("span", { class: "badge bad", children: away.value }) : null,
    r4?.now ? /* @__PURE__ */ a4("span", { class: "badge good", title: r4.text, children: [
      /* @__PURE__ */ a4("span", { "aria-hidden": "true", children: "●" }),
      " recording"
    ] }) : null,
    r4 && !r4.now ? /* @__PURE__ */ a4("span", { class: "badge warn", title: r4.text, children: late2[r4.state] }) : null,
    meta.failed.value ? /* @__PURE__ */ a4("span", { class: "badge bad", children: meta.failed.value }) : null,
    /* @__PURE__ */ a4(Driving, {})
  ] });
}
function Filters() {
  const f5 = filtering.value, m5 = meta.answer.value, more = useSignal(Boolean(f5.label || f5.manager || f5.path || f5.type)), beats = f5.class.includes("heartbeat");
  const hidden = density.answer.value?.hidden?.heartbeat ?? 0, total = density.answer.value ? bars(density.answer.value).total.reduce((a5, b3) => a5 + b3, 0) : 0;
  const on = (c4) => f5.class.length === 0 ? c4 !== "heartbeat" : f5.class.includes(c4);
  return /* @__PURE__ */ a4("form", { class: `filters${more.value ? " open" : ""}`, role: "search", onSubmit: (e4) => e4.preventDefault(), children: [
    /* @__PURE__ */ a4("input", { id: "search", type: "search", placeholder: "name  ( / )", "aria-label": "Name of objects", value: f5.name, onInput: (e4) => filter({ name: e4.currentTarget.value }, "glide") }),
    /* @__PURE__ */ a4(Several, { label: "namespace", all: "all namespaces", options: (m5?.namespaces ?? []).map((n3) => [n3, n3]), chosen: f5.namespace, set: (namespace) => filter({ namespace }) }),
    /* @__PURE__ */ a4(Several, { label: "kind", all: "all kinds", options: (m5?.resources ?? []).map((r4) => [r4.resource, r4.kind === "" ? r4.resource : `${r4.kind} (${r4.resource})`]), chosen: f5.resource, set: (resource) => filter({ resource }) }),
    /* @__PURE__ */ a4("span", { class: "group classes", role: "group", "aria-label": "Classes", children: [
      usual.map((c4) => /* @__PURE__ */ a4("button", { type: "button", class: `toggle c-${c4}`, "aria-pressed": on(c4), onClick: () => toggle(c4), children: c4 }, c4)),
      /* @__PURE__ */ a4("button", { type: "button", class: "toggle c-heartbeat", "aria-pressed": beats, onClick: () => toggle("heartbeat"), title: "Renewals of Leases and the like (h)", children: beats ? "heartbeats" : `${count(hidden)} ${hidden === 1 ? "heartbeat" : "heartbeats"} hidden` })
    ] }),
    /* @__PURE__ */ a4("button", { type: "button", class: "opener", "aria-expanded": more.value, onClick: () => {
      more.value = !more.value;
    }, children: more.value ? "fewer filters" : "more filters" }),
    filtered(f5) ? /* @__PURE__ */ a4("button", { type: "button", class: "clear", onClick: clearFilter, children: "clear" }) : null,
    more.value ? /* @__PURE__ */ a4(More, {}) : null,
    /* @__PURE__ */ a4("span", { class: "faint total", title: "in the window", children: density.answer.value ? `${count(total)} ${total === 1 ? "change" : "changes"}` : "" })
  ] });
}
function More() {
  const f5 = filtering.value, field = (name, hint2) => /* @__PURE__ */ a4("label", { children: [
    name,
    " ",
    /* @__PURE__ */ a4("input", { value: f5[name], placeholder: hint2, onChange: (e4) => filter({ [name]: e4.currentTarget.value }) })
  ] });
  return /* @__PURE__ */ a4("span", { class: "more-filters", children: [
    field("label", "app=cart,tier!=db"),
    field("manager", "kubectl"),
    field("path", "/spec/template"),
    /* @__PURE__ */ a4("label", { children: [
      "type ",
      /* @__PURE__ */ a4("select", { value: f5.type, onChange: (e4) => filter({ type: e4.currentTarget.value }), children: ["", "Added", "Updated", "Deleted", "Sync"].map((t4) => /* @__PURE__ */ a4("option", { value: t4, children: t4 || "any" }, t4)) })
    ] })
  ] });
}
function toggle(c4) {
  const f5 = focus.peek().filter, was2 = f5.class.length === 0 ? usual : f5.class, now2 = was2.includes(c4) ? was2.filter((x3) => x3 !== c4) : [...was2, c4];
  const ordered = classes.filter((x3) => now2.includes(x3)), plain = ordered.length === usual.length && !ordered.includes("heartbeat");
  filter({ class: plain || ordered.length === 0 ? [] : ordered });
}
function Several({ label: label2, all: none2, options, chosen: chosen2, set: set2 }) {
  return /* @__PURE__ */ a4("span", { class: "several", children: [
    /* @__PURE__ */ a4("select", { "aria-label": `Add a ${label2}`, value: "", onChange: (e4) => {
      const v4 = e4.currentTarget.value;
      e4.currentTarget.value = "";
      if (v4) set2([...chosen2, v4]);
    }, children: [
      /* @__PURE__ */ a4("option", { value: "", children: chosen2.length === 0 ? none2 : `+ ${label2}` }),
      options.filter(([v4]) => !chosen2.includes(v4)).map(([v4, text]) => /* @__PURE__ */ a4("option", { value: v4, children: text }, v4))
    ] }),
    chosen2.map((c4) => /* @__PURE__ */ a4("button", { type: "button", class: "chip", "aria-label": `Without ${label2} ${c4}`, onClick: () => set2(chosen2.filter((x3) => x3 !== c4)), children: [
      c4,
      " ×"
    ] }, c4))
  ] });
}

// src/lanepaint.ts
var row = 26;
var marksOf = /* @__PURE__ */ new WeakMap();
var barsOf = /* @__PURE__ */ new WeakMap();
function marks2(t4) {
  let made2 = t4 ? marksOf.get(t4) : /* @__PURE__ */ new Map();
  if (t4 && !made2) {
    made2 = new Map(t4.lanes.map((l4) => [l4.id, {
      time: Float64Array.from(l4.time, (ms) => ms + t4.from),
      seq: Float64Array.from(l4.seq),
      count: Uint32Array.from(l4.count),
      class: l4.class.map((i4) => t4.classes[i4] ?? ""),
      manager: l4.manager.map((i4) => i4 < 0 ? "" : t4.managers[i4] ?? "")
    }]));
    marksOf.set(t4, made2);
  }
  return made2;
}
function stateBars(s4) {
  let made2 = s4 ? barsOf.get(s4) : /* @__PURE__ */ new Map();
  if (s4 && !made2) {
    made2 = new Map(s4.lanes.map((l4) => [l4.id, {
      from: Float64Array.from(l4.from, (ms) => ms + s4.from),
      to: Float64Array.from(l4.to, (ms) => ms + s4.from),
      state: l4.state,
      text: l4.text
    }]));
    barsOf.set(s4, made2);
  }
  return made2;
}
function paintLanes(c4, s4) {
  const at2 = marks2(s4.ticks), of2 = stateBars(s4.states);
  drawn2.marks = [];
  drawn2.bars = [];
  drawn2.merged = s4.ticks?.stepMs ?? 0;
  unhatch("lanes");
  for (let i4 = s4.first; i4 < Math.min(s4.last, s4.lanes.length); i4++) {
    const lane = s4.lanes[i4], y5 = i4 * row - s4.top;
    c4.fillStyle = s4.p.rule;
    c4.fillRect(0, y5 + row - 1, s4.scale.width, 1);
    if (lane.uid === s4.active) tint(c4, y5, s4);
    life(c4, lane, y5, s4);
    const found = at2.get(lane.id);
    states2(c4, lane, of2.get(lane.id), found, y5, s4);
    unknown(c4, lane, y5, s4);
    ends(c4, lane, y5, s4);
    if (found) ticks2(c4, lane, found, y5, s4);
  }
}
function tint(c4, y5, s4) {
  c4.globalAlpha = 0.12;
  c4.fillStyle = s4.p.accent;
  c4.fillRect(0, y5, s4.scale.width, row - 1);
  c4.globalAlpha = 1;
}
var between = (lane, s4) => [
  lane.born === null ? -1 : Math.max(-1, s4.scale.x(lane.born)),
  Math.min(s4.scale.width + 1, s4.scale.x(lane.ended ?? s4.end))
];
function life(c4, lane, y5, s4) {
  const [from, to] = between(lane, s4);
  if (to < 0 || from > s4.scale.width) return;
  c4.fillStyle = s4.p.rule;
  c4.fillRect(from, y5 + 5, Math.max(2, to - from), row - 11);
}
function states2(c4, lane, b3, m5, y5, s4) {
  if (!b3) return;
  for (let i4 = 0; i4 < b3.from.length; i4++) {
    const x0 = Math.max(-1, s4.scale.x(b3.from[i4] ?? 0)), x1 = Math.min(s4.scale.width + 1, s4.scale.x(b3.to[i4] ?? 0)), state2 = b3.state[i4] ?? "unknown";
    if (x1 < 0 || x0 > s4.scale.width || state2 === "gone") continue;
    const w5 = Math.max(state2 === "bad" ? 2 : 1, x1 - x0), color = s4.p[state2] ?? s4.p.unknown;
    if (state2 === "unknown") hatch(c4, x0, y5 + 5, w5, row - 11, s4.p);
    else {
      c4.fillStyle = color;
      c4.globalAlpha = state2 === "ok" ? 0.38 : 0.6;
      c4.fillRect(x0, y5 + 5, w5, row - 11);
      c4.globalAlpha = 1;
      c4.fillRect(x0, y5 + row - 8, w5, 2);
    }
    drawn2.bars.push({ lane: lane.id, from: b3.from[i4] ?? 0, to: b3.to[i4] ?? 0, state: state2, text: b3.text[i4] ?? "" });
    caption(c4, b3.text[i4] ?? "", x0, x1, y5, m5, s4);
  }
}
var captions = font(10.5);
var numbers = font(10, 700);
function caption(c4, text, from, to, y5, m5, s4) {
  if (!text || to - from < 40) return;
  c4.font = captions;
  c4.textBaseline = "middle";
  const fits = clip(c4, text, to - from - 10, captions), width2 = wide(c4, fits, captions);
  let x3 = Math.max(from, 0) + 5;
  for (let i4 = 0; m5 && i4 < m5.time.length; i4++) {
    const at2 = s4.scale.x(m5.time[i4] ?? 0);
    if (at2 > x3 - 10 && at2 < x3 + width2 + 10) x3 = at2 + 14;
  }
  if (!fits || x3 + width2 > to - 3) return;
  c4.fillStyle = s4.p.ink;
  c4.fillText(fits, x3, y5 + row / 2 - 1);
}
function unknown(c4, lane, y5, s4) {
  for (const i4 of s4.incomplete) {
    if (i4.stream ? !covers(i4.stream, lane) : i4.kind === "before") continue;
    const found = stretch(i4, s4.scale);
    if (!found) continue;
    hatch(c4, found.x, y5 + 2, found.w, row - 5, s4.p);
    hatched("lanes", i4, i4.stream ? [i4.stream] : [], lane.id);
  }
}
function covers(stream, lane) {
  const [resource, namespace] = stream.split(" in namespace ");
  return resource === lane.resource && (namespace === void 0 || namespace === lane.namespace);
}
function ends(c4, lane, y5, s4) {
  c4.fillStyle = s4.p.ink;
  if (lane.born !== null) {
    const x4 = s4.scale.x(lane.born);
    if (x4 >= 0 && x4 <= s4.scale.width) c4.fillRect(Math.round(x4), y5 + 3, 1.5, row - 7);
  }
  if (lane.ended === null) return;
  const x3 = Math.round(s4.scale.x(lane.ended));
  if (x3 < 0 || x3 > s4.scale.width) return;
  c4.fillRect(x3 - 1, y5 + 3, 1.5, row - 7);
}
function ticks2(c4, lane, m5, y5, s4) {
  for (let i4 = 0; i4 < m5.time.length; i4++) {
    const time = m5.time[i4] ?? 0, x3 = s4.scale.x(time), n3 = m5.count[i4] ?? 1, kind = m5.class[i4] ?? "";
    if (x3 < -10 || x3 > s4.scale.width + 10) continue;
    const color = s4.p.class[kind] ?? s4.p.faint;
    if (n3 > 1) pill(c4, x3, y5, n3, color, s4.p);
    else shape(c4, x3, y5 + row / 2 - 1, kind, color, s4.p);
    if (time >= s4.scale.from && time < s4.scale.to) drawn2.marks.push({ lane: lane.id, time, seq: m5.seq[i4] ?? 0, count: n3, class: kind });
  }
}
function pill(c4, x3, y5, n3, color, p5) {
  c4.font = numbers;
  const text = compact(n3), w5 = Math.ceil(Math.max(14, wide(c4, text, numbers) + 6));
  stamp(c4, `${text} ${color}`, x3, y5 + 4, w5 + 2, row - 9, p5, (s4) => {
    s4.fillStyle = p5.paper;
    s4.beginPath();
    s4.roundRect(0, 0, w5 + 2, row - 9, 5);
    s4.fill();
    s4.fillStyle = color;
    s4.beginPath();
    s4.roundRect(1, 1, w5, row - 11, 4);
    s4.fill();
    s4.fillStyle = p5.paper;
    s4.font = numbers;
    s4.textBaseline = "middle";
    s4.textAlign = "center";
    s4.fillText(text, w5 / 2 + 1, row / 2 - 4);
  });
}
function shape(c4, x3, y5, kind, color, p5) {
  const w5 = 14, h5 = 20;
  stamp(c4, `${kind} ${color}`, x3, y5 - h5 / 2, w5, h5, p5, (s4) => {
    shapeAt(s4, w5 / 2, h5 / 2, kind, color, p5);
  });
}
function shapeAt(c4, x3, y5, kind, color, p5) {
  c4.beginPath();
  switch (kind) {
    case "added":
      c4.moveTo(x3 - 5, y5 + 5);
      c4.lineTo(x3, y5 - 6);
      c4.lineTo(x3 + 5, y5 + 5);
      break;
    case "event":
      c4.moveTo(x3, y5 - 6);
      c4.lineTo(x3 + 5, y5);
      c4.lineTo(x3, y5 + 6);
      c4.lineTo(x3 - 5, y5);
      break;
    case "deleted":
      cross(c4, x3, y5, color, p5);
      return;
    case "status":
    case "heartbeat":
      c4.rect(x3 - 1.5, y5 - 5, 3, 10);
      break;
    default:
      c4.rect(x3 - 3, y5 - 8, 6, 16);
  }
  c4.closePath();
  c4.lineWidth = 2;
  c4.strokeStyle = p5.paper;
  c4.stroke();
  c4.fillStyle = color;
  c4.fill();
}
function cross(c4, x3, y5, color, p5) {
  c4.moveTo(x3 - 4, y5 - 5);
  c4.lineTo(x3 + 4, y5 + 5);
  c4.moveTo(x3 + 4, y5 - 5);
  c4.lineTo(x3 - 4, y5 + 5);
  c4.lineWidth = 5;
  c4.strokeStyle = p5.paper;
  c4.stroke();
  c4.lineWidth = 2.5;
  c4.strokeStyle = color;
  c4.stroke();
}
function nearest(m5, s4, x3) {
  let found = -1, away2 = 11;
  for (let i4 = 0; m5 && i4 < m5.time.length; i4++) {
    const d4 = Math.abs(s4.x(m5.time[i4] ?? 0) - x3);
    if (d4 < away2) [found, away2] = [i4, d4];
  }
  return found;
}
function stateAt(b3, ms) {
  for (let i4 = 0; b3 && i4 < b3.from.length; i4++) if (ms >= (b3.from[i4] ?? 0) && ms < (b3.to[i4] ?? 0)) return b3.text[i4] || b3.state[i4] || "";
  return "";
}

// src/lanes.tsx
var top = y3(0);
var tall = y3(300);
var active = y3(0);
var hover = y3("");
var labels2 = () => innerWidth < 760 ? 156 : 290;
var headHeight = 58;
var ruler2 = 18;
var scale = () => {
  const s4 = shown.value;
  return s4 && lanesWidth.value > 0 ? new Scale(s4.from, s4.to, lanesWidth.value) : null;
};
var list2 = O(() => lanes.answer.value?.lanes ?? []);
var first = O(() => Math.max(0, Math.floor(top.value / row) - 3));
var last = O(() => Math.min(list2.value.length, Math.ceil((top.value + tall.value) / row) + 3));
var block = 20;
x2(() => {
  const from = Math.floor(first.value / block) * block, to = Math.ceil(last.value / block) * block;
  visible.value = list2.value.slice(from, to).map((l4) => l4.id).join(",");
});
var incomplete = () => density.answer.value?.incomplete ?? lanes.answer.value?.incomplete ?? [];
var ofLanes = () => ticks.answer.value?.incomplete ?? lanes.answer.value?.incomplete ?? [];
function paint2(canvas) {
  const s4 = scale(), p5 = palette.value;
  if (!s4) return;
  const began = performance.now(), c4 = size(canvas, s4.width, tall.value);
  c4.fillStyle = p5.paper;
  c4.fillRect(0, 0, s4.width, tall.value);
  const end2 = whole2.value?.to ?? s4.to;
  paintLanes(c4, {
    lanes: list2.value,
    first: first.value,
    last: last.value,
    top: top.value,
    scale: s4,
    ticks: ticks.answer.value,
    states: states.answer.value,
    incomplete: ofLanes(),
    end: end2,
    active: chosenUid.value,
    p: p5
  });
  const time = scrub.value ?? cursor.value;
  if (time !== null && time >= s4.from && time <= s4.to) paintCursor(c4, s4.x(time), 0, tall.value, p5);
  frame(began);
}
function paintHead(canvas) {
  const s4 = scale(), p5 = palette.value;
  if (!s4) return;
  const c4 = size(canvas, s4.width, headHeight), body = headHeight - ruler2, answer = density.answer.value;
  c4.fillStyle = p5.paper;
  c4.fillRect(0, 0, s4.width, headHeight);
  if (answer) paintBars(c4, bars(answer), s4, 0, body, p5, "density");
  paintIncomplete(c4, incomplete(), s4, 0, body, p5, "density");
  paintRuler(c4, s4, body, p5);
  const moved = changeOfOffset(s4.from, s4.to);
  if (moved !== null) {
    c4.fillStyle = p5.progress;
    c4.fillRect(s4.x(moved), 0, 1, headHeight);
    c4.font = font(10, 600);
    c4.fillText(`${zone(s4.from)} → ${zone(s4.to)}`, s4.x(moved) + 4, 2);
  }
  const time = scrub.value ?? cursor.value;
  if (time !== null && time >= s4.from && time <= s4.to) paintCursor(c4, s4.x(time), 0, headHeight, p5);
}
var lives = O(() => {
  const same = /* @__PURE__ */ new Map();
  for (const l4 of list2.value) {
    const name = `${l4.resource} ${l4.namespace ?? ""} ${l4.name}`, known = same.get(name);
    if (known) known.push(l4);
    else same.set(name, [l4]);
  }
  const numbers2 = /* @__PURE__ */ new Map();
  for (const some of same.values()) if (some.length > 1) {
    some.sort((a5, b3) => (a5.born ?? 0) - (b3.born ?? 0)).forEach((l4, i4) => numbers2.set(l4.id, `life ${i4 + 1} of ${some.length}`));
  }
  return numbers2;
});
function Lanes() {
  const width2 = useWidth(lanesWidth, labels2), head2 = usePainted(paintHead), body = usePainted(paint2), scroller = T2(null);
  const onHead = w2(() => handlers(head2, false), []), onBody = w2(() => handlers(body, true), []);
  A2(() => {
    const box = scroller.current, observer = new ResizeObserver(() => {
      tall.value = box.clientHeight;
    });
    observer.observe(box);
    const wheel = (e4) => spin(e4, body.current);
    box.addEventListener("wheel", wheel, { passive: false });
    return () => {
      observer.disconnect();
      box.removeEventListener("wheel", wheel);
    };
  }, []);
  const answer = lanes.answer.value, rest2 = (answer?.total ?? 0) - list2.value.length;
  return /* @__PURE__ */ a4("section", { class: "lanes", "aria-label": "Objects in the window", children: [
    /* @__PURE__ */ a4("div", { class: "lanes-head", ref: width2, children: [
      /* @__PURE__ */ a4(Order, {}),
      /* @__PURE__ */ a4("canvas", { ref: head2, class: "lanes-density", role: "img", "aria-label": "Changes in the window", ...onHead })
    ] }),
    /* @__PURE__ */ a4("div", { class: "lanes-body", ref: scroller, onScroll: () => {
      top.value = scroller.current?.scrollTop ?? 0;
    }, children: [
      /* @__PURE__ */ a4("div", { class: "lanes-stick", children: /* @__PURE__ */ a4("canvas", { ref: body, class: "lanes-canvas", "aria-hidden": "true", ...onBody }) }),
      /* @__PURE__ */ a4(Rows, {}),
      rest2 > 0 ? /* @__PURE__ */ a4("button", { type: "button", class: "more", onClick: () => {
        pages.value++;
      }, children: [
        count(rest2),
        " more ",
        rest2 === 1 ? "object" : "objects",
        ": show ",
        count(Math.min(page, rest2)),
        " of them"
      ] }) : null,
      /* @__PURE__ */ a4(Left, {}),
      answer && answer.total === 0 ? /* @__PURE__ */ a4("p", { class: "empty", children: [
        "No object changed in this window",
        live.value ? " so far" : "",
        ", by this filter. Widen the window with −, or press 0 for all of the record."
      ] }) : null,
      lanes.failed.value ? /* @__PURE__ */ a4("p", { class: "error", children: lanes.failed.value }) : null
    ] }),
    /* @__PURE__ */ a4(Reading, {})
  ] });
}
function Reading() {
  return /* @__PURE__ */ a4("p", { class: "read", "aria-hidden": "true", children: hover.value || hint() });
}
function Left() {
  const left = Object.entries(lanes.answer.value?.left ?? {}).filter(([, n3]) => n3 > 0);
  if (left.length === 0) return null;
  return /* @__PURE__ */ a4("p", { class: "left", children: [
    "Not drawn as lanes: ",
    left.map(([resource, n3]) => /* @__PURE__ */ a4("button", { type: "button", class: "more", onClick: () => filter({ resource: [resource] }), children: [
      count(n3),
      " ",
      resource
    ] }, resource))
  ] });
}
var hint = () => {
  const s4 = shown.value, before = older(density.answer.value);
  return s4 ? `${full(s4.from)} to ${full(s4.to)} (${span(s4.to - s4.from)}).${before > 0 ? ` ${count(before)} ${before === 1 ? "change is" : "changes are"} dated before the record began.` : ""} Drag scrubs, Ctrl+wheel zooms, Shift+drag moves.` : "";
};
function Order() {
  const total = lanes.answer.value?.total;
  return /* @__PURE__ */ a4("div", { class: "order", children: [
    /* @__PURE__ */ a4("strong", { children: [
      total === void 0 ? "…" : count(total),
      " ",
      total === 1 ? "object" : "objects"
    ] }),
    /* @__PURE__ */ a4("span", { class: "choices", children: [
      /* @__PURE__ */ a4("select", { "aria-label": "Group by", value: grouping.value, onChange: (e4) => move({ group: e4.currentTarget.value }), children: [
        /* @__PURE__ */ a4("option", { value: "owner", children: "by owner" }),
        /* @__PURE__ */ a4("option", { value: "node", children: "by node" }),
        /* @__PURE__ */ a4("option", { value: "none", children: "ungrouped" })
      ] }),
      /* @__PURE__ */ a4("select", { "aria-label": "Sort by", value: sorting.value, onChange: (e4) => move({ sort: e4.currentTarget.value }), children: [
        /* @__PURE__ */ a4("option", { value: "changes", children: "most changes" }),
        /* @__PURE__ */ a4("option", { value: "trouble", children: "trouble first" }),
        /* @__PURE__ */ a4("option", { value: "name", children: "by name" })
      ] })
    ] })
  ] });
}
function Rows() {
  const all3 = list2.value, from = first.value, to = last.value, answer = lanes.answer.value;
  return /* @__PURE__ */ a4("div", { role: "treegrid", class: "rows", "aria-label": "Objects", "aria-rowcount": answer?.total ?? -1, style: { height: `${all3.length * row}px` }, onKeyDown: keys, children: all3.slice(from, to).map((l4, i4) => /* @__PURE__ */ a4(Row, { lane: l4, index: from + i4 }, l4.id)) });
}
function Row({ lane, index }) {
  const chosen2 = lane.uid === chosenUid.value, now2 = cursor.value ?? whole2.value?.to ?? 0, state2 = stateAt(stateBars(states.answer.value).get(lane.id), now2);
  const life2 = lives.value.get(lane.id), name = lane.name, split = name.length > 16 ? name.length - 9 : name.length;
  return /* @__PURE__ */ a4(
    "div",
    {
      role: "row",
      class: `row${chosen2 ? " chosen" : ""}${lane.trouble ? " trouble" : ""}`,
      "aria-rowindex": index + 1,
      "aria-level": lane.depth + 1,
      "aria-selected": chosen2,
      tabIndex: index === active.value ? 0 : -1,
      "data-index": index,
      "data-lane": lane.id,
      style: { top: `${index * row}px`, "--depth": Math.min(lane.depth, 4) },
      title: `${lane.kind} ${lane.namespace ? lane.namespace + "/" : ""}${lane.name}${life2 ? `, ${life2}` : ""}${lane.trouble ? `: ${lane.trouble}` : ""}`,
      onClick: () => {
        active.value = index;
        move(of(lane));
      },
      onFocus: () => {
        active.value = index;
      },
      children: [
        /* @__PURE__ */ a4("span", { role: "rowheader", class: "name", children: [
          /* @__PURE__ */ a4("span", { class: "kind", children: lane.kind }),
          /* @__PURE__ */ a4("span", { class: "start", children: name.slice(0, split) }),
          /* @__PURE__ */ a4("span", { class: "end", children: name.slice(split) }),
          life2 ? /* @__PURE__ */ a4("span", { class: "life", children: life2 }) : null,
          lane.depth === 0 || grouping.value !== "owner" ? /* @__PURE__ */ a4("span", { class: "space", children: lane.namespace }) : null
        ] }),
        /* @__PURE__ */ a4("span", { role: "gridcell", class: "number", title: lane.hidden > 0 ? `${count(lane.hidden)} hidden by the filter` : void 0, children: [
          count(lane.changes),
          /* @__PURE__ */ a4("span", { class: "unseen", children: [
            " changes",
            lane.hidden > 0 ? `, ${count(lane.hidden)} hidden` : ""
          ] })
        ] }),
        /* @__PURE__ */ a4("span", { role: "gridcell", class: "unseen", children: [
          state2,
          lane.trouble ? `, ${lane.trouble}` : "",
          lane.ended !== null ? ", ended" : ""
        ] })
      ]
    }
  );
}
function goTo(index) {
  const i4 = Math.min(Math.max(0, index), list2.peek().length - 1), box = document.querySelector(".lanes-body");
  if (i4 < 0 || !box) return;
  active.value = i4;
  if (i4 * row < box.scrollTop) box.scrollTop = i4 * row;
  if ((i4 + 1) * row > box.scrollTop + box.clientHeight) box.scrollTop = (i4 + 1) * row - box.clientHeight;
  top.value = box.scrollTop;
  requestAnimationFrame(() => document.querySelector(`.row[data-index="${i4}"]`)?.focus({ preventScroll: true }));
}
function keys(e4) {
  const to = { ArrowDown: active.value + 1, ArrowUp: active.value - 1, Home: 0, End: list2.value.length - 1, PageDown: active.value + 10, PageUp: active.value - 10 }[e4.key];
  const lane = list2.value[active.value];
  if (to !== void 0 && !e4.altKey && !e4.ctrlKey && !e4.metaKey) goTo(to);
  else if ((e4.key === "Enter" || e4.key === " ") && lane) move(of(lane));
  else return;
  e4.preventDefault();
  e4.stopPropagation();
}
function spin(e4, canvas) {
  const s4 = scale();
  if (!s4 || !e4.ctrlKey && !e4.metaKey && !e4.shiftKey && Math.abs(e4.deltaX) <= Math.abs(e4.deltaY)) return;
  e4.preventDefault();
  if (e4.ctrlKey || e4.metaKey) zoom(Math.exp(e4.deltaY / 300), s4.ms(e4.clientX - canvas.getBoundingClientRect().left));
  else pan((e4.shiftKey && e4.deltaX === 0 ? e4.deltaY : e4.deltaX) / s4.width * (s4.to - s4.from));
}
function handlers(canvas, rows) {
  let began = 0, was2 = 0, how = "";
  const x3 = (e4) => e4.clientX - (canvas.current?.getBoundingClientRect().left ?? 0);
  const laneAt = (e4) => rows ? list2.peek()[Math.floor((e4.clientY - (canvas.current?.getBoundingClientRect().top ?? 0) + top.peek()) / row)] : void 0;
  return {
    onPointerDown: (e4) => {
      if (e4.button !== 0) return;
      canvas.current?.setPointerCapture(e4.pointerId);
      [began, was2, how] = [x3(e4), x3(e4), e4.shiftKey ? "pan" : "press"];
    },
    onPointerMove: (e4) => {
      const s4 = scale(), now2 = x3(e4);
      if (!s4) return;
      if (how === "press" && Math.abs(now2 - began) > 4) how = "scrub";
      if (how === "scrub") scrub.value = s4.ms(Math.min(Math.max(0, now2), s4.width));
      if (how === "pan") {
        pan(-((now2 - was2) / s4.width) * (s4.to - s4.from));
        was2 = now2;
      }
      hover.value = read6(laneAt(e4), s4, now2);
    },
    onPointerUp: (e4) => {
      const s4 = scale(), done = how, time = scrub.peek();
      how = "";
      if (!s4) return;
      if (done === "scrub" && time !== null) void lookAt(time);
      if (done === "press") open(laneAt(e4), s4, x3(e4));
    },
    onPointerCancel: () => {
      how = "";
      scrub.value = null;
    },
    onPointerLeave: () => {
      hover.value = "";
    },
    onDblClick: (e4) => {
      const s4 = scale();
      if (s4) zoom(0.33, s4.ms(x3(e4)));
    }
  };
}
function open(lane, s4, x3) {
  const m5 = lane && marks2(ticks.answer.peek()).get(lane.id), i4 = nearest(m5, s4, x3);
  if (lane) active.value = list2.peek().indexOf(lane);
  if (m5 && i4 >= 0) look2(m5.seq[i4] ?? 0, m5.time[i4] ?? null, lane ? of(lane) : {});
  else void lookAt(s4.ms(x3), lane ? of(lane) : {});
}
function read6(lane, s4, x3) {
  const time = s4.ms(x3);
  if (!lane) {
    const answer = density.answer.peek(), bar = answer && at(bars(answer), time);
    return bar ? `${full(bar.from)} · ${bar.parts.map(([c4, n3]) => `${count(n3)} ${c4}`).join(", ") || "nothing"} in ${span(bar.to - bar.from)}` : full(time);
  }
  const who = `${lane.kind} ${lane.namespace ? lane.namespace + "/" : ""}${lane.name}`, m5 = marks2(ticks.answer.peek()).get(lane.id), i4 = nearest(m5, s4, x3);
  if (m5 && i4 >= 0) {
    const n3 = m5.count[i4] ?? 1, by = m5.manager[i4];
    return `${full(m5.time[i4] ?? 0)} · ${who} · ${n3 > 1 ? `${count(n3)} changes, ${m5.class[i4]} among them` : m5.class[i4]}${by ? ` by ${by}` : ""} · seq:${m5.seq[i4]}`;
  }
  const state2 = stateAt(stateBars(states.answer.peek()).get(lane.id), time), hole = ofLanes().find((g5) => (!g5.stream || covers(g5.stream, lane)) && time >= g5.from && (g5.to === null || time < g5.to));
  return `${full(time)} · ${who}${state2 ? ` · ${state2}` : ""}${hole ? ` · ${hole.text}` : ""}`;
}

// src/rows.tsx
function Rows2({ rows, at: at2, plain = false }) {
  return /* @__PURE__ */ a4("ol", { class: "changes", children: rows.map((r4) => /* @__PURE__ */ a4("li", { class: r4.seq === at2 ? "here" : "", onClick: (e4) => {
    if (!e4.target.closest("button")) look2(r4.seq, r4.time, plain ? {} : { uid: r4.uid ?? "", resource: r4.resource, namespace: r4.namespace ?? "", name: r4.name, panel: "object" });
  }, children: [
    /* @__PURE__ */ a4("p", { class: "line-head", children: [
      /* @__PURE__ */ a4(When, { seq: r4.seq, time: r4.time, more: plain ? void 0 : r4 }),
      " ",
      /* @__PURE__ */ a4(Class, { of: r4.class }),
      " ",
      plain ? null : /* @__PURE__ */ a4("span", { class: "subject", children: [
        /* @__PURE__ */ a4("span", { class: "kind", children: r4.kind }),
        " ",
        r4.namespace ? /* @__PURE__ */ a4("span", { class: "faint", children: [
          r4.namespace,
          "/"
        ] }) : null,
        /* @__PURE__ */ a4("b", { children: r4.name })
      ] }),
      " ",
      /* @__PURE__ */ a4(Writer, { manager: r4.manager, evidence: r4.evidence }),
      r4.link ? /* @__PURE__ */ a4("span", { class: "faint", children: r4.link }) : null
    ] }),
    (r4.changes ?? []).length > 0 ? /* @__PURE__ */ a4(Diff, { changes: r4.changes ?? [], short: true }) : null
  ] }, r4.seq)) });
}

// src/now.tsx
var waits = (of2, does) => /* @__PURE__ */ a4("p", { class: "busy", children: of2.busy.value ? does : "The strip and the lanes come first…" });
function Now() {
  const at2 = cursor.value;
  return /* @__PURE__ */ a4("div", { class: "now", children: [
    /* @__PURE__ */ a4(Complete, {}),
    /* @__PURE__ */ a4(TroubleList, { title: at2 !== null ? `Trouble at ${brief(at2, whole2.value?.to ?? at2)}` : stopped.value ? "Trouble at the last commit" : "Trouble now" }),
    /* @__PURE__ */ a4(Recent, {})
  ] });
}
var advice = {
  stopped: "Start the recorder.",
  starting: "The recorder has begun.",
  quiet: "The recorder runs: does it reach the cluster?",
  behind: "The recorder writes what it has seen."
};
function Complete() {
  const answer = recentCount.answer.value, h5 = lastHour.value;
  if (!h5) return /* @__PURE__ */ a4("p", { class: "busy", children: "The record is asked for…" });
  if (!answer) return recentCount.failed.value ? /* @__PURE__ */ a4("p", { class: "error", children: recentCount.failed.value }) : waits(recentCount, "The hour is counted…");
  const ended2 = cursor.value === null && stopped.value;
  const holes = (answer.incomplete ?? []).filter((i4) => (i4.kind !== "before" || i4.to === null) && (!ended2 || i4.from < h5.to - 1)), short3 = h5.to - h5.from < 35e5;
  const what = short3 ? `The record begins ${span(h5.to - h5.from)} before ${ended2 ? "its last commit" : "this instant"}` : `The hour to ${brief(h5.to, whole2.value?.to ?? h5.to)}`;
  return /* @__PURE__ */ a4("section", { class: `complete ${holes.length > 0 ? "holed" : "sound"}`, "aria-label": "Is the hour complete", children: [
    /* @__PURE__ */ a4("p", { children: [
      /* @__PURE__ */ a4("span", { class: "sign", "aria-hidden": "true", children: holes.length > 0 ? "◍" : "●" }),
      " ",
      /* @__PURE__ */ a4("b", { children: short3 ? `${what}, and is ${holes.length > 0 ? "not " : ""}complete since.` : `${what} is ${holes.length > 0 ? "not " : ""}complete.` }),
      holes.length > 0 ? " What is hatched is not known." : ` Every version that the server had is on record.`
    ] }),
    ended2 && head.value ? /* @__PURE__ */ a4("p", { children: [
      recording.value?.state === "stopped" ? "Nobody has recorded since" : "The record ends at",
      " ",
      full(head.value.time).slice(0, 19),
      " ",
      zone(head.value.time),
      ": what came then is not known. ",
      advice[recording.value?.state ?? ""]
    ] }) : null,
    /* @__PURE__ */ a4(Holes, { of: holes })
  ] });
}
function TroubleList({ title }) {
  const answer = trouble.answer.value, items = answer?.items ?? [];
  if (trouble.missing.value) return null;
  return /* @__PURE__ */ a4(Section, { title, note: answer ? items.length < answer.total ? `${count(items.length)} of ${count(answer.total)}` : count(answer.total) : void 0, children: [
    trouble.failed.value ? /* @__PURE__ */ a4("p", { class: "error", children: trouble.failed.value }) : null,
    !answer && !trouble.failed.value ? waits(trouble, "All objects are looked at…") : null,
    answer && items.length === 0 ? /* @__PURE__ */ a4("p", { class: "calm", children: "Nothing is in trouble: no object says so of itself." }) : null,
    /* @__PURE__ */ a4("ol", { class: "troubles", children: items.map((t4, i4) => {
      const r4 = t4.ref ?? t4;
      return /* @__PURE__ */ a4("li", { children: [
        /* @__PURE__ */ a4("button", { type: "button", class: "link", onClick: () => move(of(r4)), children: [
          /* @__PURE__ */ a4("span", { class: "kind", children: r4.kind }),
          " ",
          /* @__PURE__ */ a4("b", { children: named(r4) })
        ] }),
        /* @__PURE__ */ a4("span", { class: "badness", children: t4.text }),
        /* @__PURE__ */ a4("p", { class: "faint", children: [
          t4.since !== null && t4.sinceTime !== null ? /* @__PURE__ */ a4($, { children: [
            "since ",
            /* @__PURE__ */ a4(When, { seq: t4.since, time: t4.sinceTime, more: r4 }),
            head.value ? ` (${span((cursor.value ?? head.value.time) - t4.sinceTime)})` : ""
          ] }) : t4.unknown ? "" : "for more than a day",
          t4.firstChange ? /* @__PURE__ */ a4($, { children: [
            " · change before it ",
            /* @__PURE__ */ a4(When, { seq: t4.firstChange.seq, time: t4.firstChange.time, more: t4.firstChange.uid ? t4.firstChange : r4 }),
            " ",
            t4.firstChange.text
          ] }) : null,
          t4.unknown ? `${t4.since !== null ? " · " : ""}${t4.unknown}` : ""
        ] })
      ] }, i4);
    }) })
  ] });
}
function Recent() {
  const answer = recent.answer.value, rows = answer?.rows ?? [], counted2 = recentCount.answer.value, by = counted2 ? bars(counted2) : null, beats = counted2?.hidden?.heartbeat ?? 0;
  const sum = (c4) => by ? (by.counts[by.classes.indexOf(c4)] ?? new Float64Array()).reduce((a5, b3) => a5 + b3, 0) : 0;
  const parts = (by?.classes ?? []).map((c4) => [c4, sum(c4)]).filter(([, n3]) => n3 > 0);
  const h5 = lastHour.value;
  return /* @__PURE__ */ a4(Section, { title: `Changed in the ${h5 && h5.to - h5.from < 35e5 ? span(h5.to - h5.from) : "hour"} ${cursor.value !== null ? "before this instant" : stopped.value ? "before the last commit" : "before now"}`, children: [
    by ? /* @__PURE__ */ a4("p", { class: "sums", children: [
      parts.map(([c4, n3]) => /* @__PURE__ */ a4("span", { children: [
        /* @__PURE__ */ a4(Class, { of: c4 }),
        " ",
        count(n3)
      ] }, c4)),
      parts.length === 0 ? /* @__PURE__ */ a4("span", { class: "calm", children: "Nothing." }) : null,
      /* @__PURE__ */ a4("span", { class: "faint", children: [
        count(beats),
        " ",
        beats === 1 ? "heartbeat is" : "heartbeats are",
        " not shown"
      ] })
    ] }) : null,
    recent.failed.value && !recent.missing.value ? /* @__PURE__ */ a4("p", { class: "error", children: recent.failed.value }) : null,
    /* @__PURE__ */ a4(Rows2, { rows }),
    answer?.next ? /* @__PURE__ */ a4("button", { type: "button", class: "more", onClick: () => move({ panel: "changes" }), children: [
      "The newest ",
      count(rows.length),
      " are shown: open all"
    ] }) : null,
    /* @__PURE__ */ a4(Command, { text: answer?.command ?? "" })
  ] });
}
function ChangeList() {
  const answer = changes.answer.value, rows = answer?.rows ?? [], s4 = shown.value, total = density.answer.value;
  const all3 = total ? bars(total).total.reduce((a5, b3) => a5 + b3, 0) : null;
  return /* @__PURE__ */ a4(Section, { title: "Changes in the window", note: all3 === null ? void 0 : `${count(rows.length)} of ${count(all3)}`, children: [
    s4 ? /* @__PURE__ */ a4("p", { class: "faint", children: [
      full(s4.from),
      " to ",
      full(s4.to),
      ", newest first."
    ] }) : null,
    changes.failed.value ? /* @__PURE__ */ a4("p", { class: "error", children: changes.failed.value }) : null,
    !answer && !changes.failed.value ? /* @__PURE__ */ a4("p", { class: "busy", children: "The changes are read…" }) : null,
    /* @__PURE__ */ a4(Rows2, { rows, at: chosenAt.value ?? void 0 }),
    answer?.next ? /* @__PURE__ */ a4("button", { type: "button", class: "more", onClick: () => {
      morePages.value++;
    }, children: "show 100 more" }) : null,
    /* @__PURE__ */ a4(Command, { text: answer?.command ?? "" })
  ] });
}
function Comparing() {
  const from = base.value, at2 = chosenAt.value, answer = compare.answer.value;
  if (from === null) return /* @__PURE__ */ a4(Section, { title: "Compare two instants", children: [
    /* @__PURE__ */ a4("p", { children: [
      "Go to an instant at which all was well, and press ",
      /* @__PURE__ */ a4("kbd", { children: "a" }),
      " or this button. Then go to the instant at which it was not."
    ] }),
    /* @__PURE__ */ a4("p", { children: /* @__PURE__ */ a4("button", { type: "button", onClick: mark2, children: "Compare with this instant" }) })
  ] });
  return /* @__PURE__ */ a4(Section, { title: "Compare", note: /* @__PURE__ */ a4($, { children: [
    "seq:",
    from,
    " with ",
    at2 === null ? "now" : `seq:${at2}`
  ] }), children: [
    /* @__PURE__ */ a4("p", { children: [
      /* @__PURE__ */ a4("button", { type: "button", onClick: () => look2(from, null), children: [
        "go to seq:",
        from
      ] }),
      " ",
      /* @__PURE__ */ a4("button", { type: "button", onClick: mark2, children: "compare with this instant instead" }),
      " ",
      /* @__PURE__ */ a4("button", { type: "button", onClick: () => move({ base: null }), children: "end" })
    ] }),
    compare.failed.value ? /* @__PURE__ */ a4("p", { class: "error", children: compare.failed.value }) : null,
    !answer && !compare.failed.value ? /* @__PURE__ */ a4("p", { class: "busy", children: "Both instants are compared…" }) : null,
    answer?.counts ? /* @__PURE__ */ a4("p", { class: "sums", children: [
      /* @__PURE__ */ a4("span", { class: "added", children: [
        "+",
        count(answer.counts.added),
        " added"
      ] }),
      /* @__PURE__ */ a4("span", { class: "removed", children: [
        "−",
        count(answer.counts.removed),
        " removed"
      ] }),
      /* @__PURE__ */ a4("span", { children: [
        "~",
        count(answer.counts.changed),
        " changed"
      ] }),
      /* @__PURE__ */ a4("span", { class: "faint", children: [
        count(answer.counts.noise),
        " differ only in noise"
      ] })
    ] }) : null,
    /* @__PURE__ */ a4("ol", { class: "compared", children: (answer?.objects ?? []).map((o5, i4) => /* @__PURE__ */ a4(Pair, { o: o5 }, i4)) }),
    answer?.next ? /* @__PURE__ */ a4("p", { class: "faint", children: [
      count((answer.objects ?? []).length),
      " objects are shown; filter by namespace or kind to see the others."
    ] }) : null,
    /* @__PURE__ */ a4(Command, { text: answer?.command ?? "" })
  ] });
}
function mark2() {
  move({ base: focus.peek().at ?? head.peek()?.seq ?? null, panel: "compare" });
}
function Pair({ o: o5 }) {
  const r4 = o5.ref ?? o5, uid2 = r4.uid ?? "", is = opened.value === uid2 && uid2 !== "";
  const mine = is && compared.asked.value?.params.uid === uid2, paths = mine ? compared.answer.value?.changes : null;
  return /* @__PURE__ */ a4("li", { children: [
    /* @__PURE__ */ a4("button", { type: "button", class: "link", "aria-expanded": is, onClick: () => {
      opened.value = is ? "" : uid2;
    }, children: [
      /* @__PURE__ */ a4(Class, { of: { removed: "deleted", changed: "change" }[o5.op] ?? o5.op }),
      " ",
      /* @__PURE__ */ a4("span", { class: "kind", children: r4.kind }),
      " ",
      /* @__PURE__ */ a4("b", { children: named(r4) }),
      " ",
      o5.paths > 0 ? /* @__PURE__ */ a4("span", { class: "faint", children: [
        count(o5.paths),
        " ",
        o5.paths === 1 ? "path" : "paths"
      ] }) : null,
      o5.recreated ? /* @__PURE__ */ a4("span", { class: "faint", children: "another life of this name" }) : null
    ] }),
    is ? /* @__PURE__ */ a4($, { children: [
      paths ? /* @__PURE__ */ a4(Diff, { changes: paths }) : /* @__PURE__ */ a4("p", { class: "busy", children: compared.failed.value || "The paths are compared…" }),
      /* @__PURE__ */ a4("button", { type: "button", class: "more", onClick: () => move(of(r4)), children: "open the object" })
    ] }) : null
  ] });
}

// src/keys.tsx
var helping = y3(false);
var width = () => {
  const s4 = shown.peek();
  return s4 ? s4.to - s4.from : 0;
};
var next = (of2, is) => of2[(of2.indexOf(is) + 1) % of2.length] ?? "";
var sheet = [
  { keys: ["/"], does: "search by name", run: () => document.getElementById("search")?.focus() },
  { keys: ["@"], does: "go to an instant: 03:12, 10m ago, yesterday 14:05", run: () => document.querySelector("#go-to")?.select() },
  { keys: ["←"], does: "previous change of the object, or of all", run: () => walk("previous") },
  { keys: ["→"], does: "next change of the object, or of all", run: () => walk("next") },
  { keys: ["Shift+←"], does: "previous change of anything in the filter", run: () => walk("previous", "cluster") },
  { keys: ["Shift+→"], does: "next change of anything in the filter", run: () => walk("next", "cluster") },
  { keys: ["<"], does: "previous change of the object and what belongs to it", run: () => walk("previous", "group") },
  { keys: [">"], does: "next change of the object and what belongs to it", run: () => walk("next", "group") },
  { keys: ["↓", "j"], does: "next lane", run: () => goTo(active.peek() + 1) },
  { keys: ["↑", "k"], does: "previous lane", run: () => goTo(active.peek() - 1) },
  { keys: ["n"], does: "go to the end of the record and follow it", run: now },
  { keys: ["["], does: "move the window back", run: () => pan(-width() / 3) },
  { keys: ["]"], does: "move the window on", run: () => pan(width() / 3) },
  { keys: ["+", "="], does: "narrow the window", run: () => middle(0.6) },
  { keys: ["-"], does: "widen the window", run: () => middle(1.6) },
  { keys: ["0"], does: "show all of the record", run: all2 },
  { keys: ["1"], does: "show an hour", run: () => widen(36e5) },
  { keys: ["6"], does: "show six hours", run: () => widen(216e5) },
  { keys: ["o"], does: "overview: trouble and the last hour", run: () => move({ panel: "now" }) },
  { keys: ["i"], does: "the object", run: () => move({ panel: "object" }) },
  { keys: ["w"], does: "changes in the window, as a list", run: () => move({ panel: "changes" }) },
  { keys: ["c"], does: "compare: open it", run: () => move({ panel: "compare" }) },
  { keys: ["a"], does: "compare with this instant", run: mark2 },
  { keys: ["p"], does: "session: show this instant in kubectl and k9s", run: () => move({ panel: "session" }) },
  { keys: ["d"], does: "what changed in the object", run: () => move({ panel: "object", tab: "change" }) },
  { keys: ["f"], does: "find a cause: what changed around the object in the hour before", run: () => move({ panel: "object", tab: "nearby" }) },
  { keys: ["y"], does: "the object's YAML", run: () => move({ panel: "object", tab: "yaml" }) },
  { keys: ["m"], does: "blame: who set each line", run: () => move({ panel: "object", tab: "blame" }) },
  { keys: ["r"], does: "the story of the object and its rollouts", run: () => move({ panel: "object", tab: "story" }) },
  { keys: ["v"], does: "the object's versions", run: () => move({ panel: "object", tab: "versions" }) },
  { keys: ["h"], does: "show or hide heartbeats", run: () => toggle("heartbeat") },
  { keys: ["g"], does: "group lanes by owner, by node, or not", run: () => move({ group: next(["owner", "node", "none"], focus.peek().group) }) },
  { keys: ["s"], does: "sort lanes by changes, trouble or name", run: () => move({ sort: next(["changes", "trouble", "name"], focus.peek().sort) }) },
  { keys: ["x"], does: "copy the command that gives the same", run: () => void copy(document.querySelector("[data-copy]")?.dataset.copy ?? "", "The command is copied.") },
  { keys: ["l"], does: "copy a link to what is seen", run: () => void copy(link(), "The link is copied. The other needs a token of this server: replay open makes one.") },
  { keys: ["u"], does: "labels in UTC or in local time", run: toggleLocal },
  { keys: ["t"], does: "dark, light, or as the system", run: () => setTheme(next(["auto", "dark", "light"], theme.peek())) },
  { keys: ["b"], does: "back: undo the last move", run: () => history.back() },
  { keys: ["?"], does: "this sheet", run: () => {
    helping.value = !helping.peek();
  } },
  { keys: ["Escape"], does: "close the sheet, leave a field, or leave the object", run: escapeKey }
];
var link = () => location.origin + location.pathname + location.hash;
async function copy(text, said) {
  if (!text) return;
  try {
    await navigator.clipboard.writeText(text);
    announced.value = said;
  } catch {
    announced.value = text;
  }
}
function escapeKey() {
  const in_ = document.activeElement;
  if (helping.peek()) helping.value = false;
  else if (in_ && in_.matches("input, select, textarea")) in_.blur();
  else if (focus.peek().uid || focus.peek().name) move({ uid: "", name: "", resource: "", namespace: "", panel: "now" });
}
var arrows = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓" };
function press(e4) {
  if (e4.ctrlKey || e4.metaKey || e4.altKey || e4.defaultPrevented) return;
  const typing = e4.target.matches("input, select, textarea"), key = arrows[e4.key] ?? e4.key;
  if (typing && key !== "Escape" || e4.target.closest("[role=tablist]") && (key === "←" || key === "→")) return;
  const wanted = e4.shiftKey && (key === "←" || key === "→") ? `Shift+${key}` : key, found = sheet.find((k4) => k4.keys.includes(wanted));
  if (!found || helping.peek() && !["?", "Escape"].includes(key)) return;
  e4.preventDefault();
  found.run();
}
function useKeys() {
  A2(() => {
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
}
function Help() {
  const ref = T2(null);
  A2(() => x2(() => {
    if (helping.value) ref.current?.showModal();
    else ref.current?.close();
  }), []);
  return /* @__PURE__ */ a4("dialog", { ref, class: "help", "aria-labelledby": "help-title", onClose: () => {
    helping.value = false;
  }, onClick: (e4) => {
    if (e4.target === ref.current) helping.value = false;
  }, children: [
    /* @__PURE__ */ a4("div", { class: "help-head", children: [
      /* @__PURE__ */ a4("h1", { id: "help-title", children: "Keys" }),
      /* @__PURE__ */ a4("button", { type: "button", onClick: () => {
        helping.value = false;
      }, children: "close" })
    ] }),
    /* @__PURE__ */ a4("dl", { children: sheet.map((k4) => /* @__PURE__ */ a4("div", { children: [
      /* @__PURE__ */ a4("dt", { children: k4.keys.map((x3) => /* @__PURE__ */ a4("kbd", { children: x3 === "Escape" ? "Esc" : x3 }, x3)) }),
      /* @__PURE__ */ a4("dd", { children: k4.does })
    ] }, k4.does)) }),
    /* @__PURE__ */ a4("h2", { children: "What is drawn" }),
    /* @__PURE__ */ a4("dl", { class: "legend", children: [
      /* @__PURE__ */ a4("div", { children: [
        /* @__PURE__ */ a4("dt", { children: /* @__PURE__ */ a4(Shape, { d: "M2 13 8 2l6 11z", of: "added" }) }),
        /* @__PURE__ */ a4("dd", { children: "added" })
      ] }),
      /* @__PURE__ */ a4("div", { children: [
        /* @__PURE__ */ a4("dt", { children: /* @__PURE__ */ a4(Shape, { d: "M5 1h6v14H5z", of: "change" }) }),
        /* @__PURE__ */ a4("dd", { children: "changed" })
      ] }),
      /* @__PURE__ */ a4("div", { children: [
        /* @__PURE__ */ a4("dt", { children: /* @__PURE__ */ a4(Shape, { d: "m2 4 2-2 4 4 4-4 2 2-4 4 4 4-2 2-4-4-4 4-2-2 4-4z", of: "deleted" }) }),
        /* @__PURE__ */ a4("dd", { children: "deleted" })
      ] }),
      /* @__PURE__ */ a4("div", { children: [
        /* @__PURE__ */ a4("dt", { children: /* @__PURE__ */ a4(Shape, { d: "M6.500 3h3v10h-3z", of: "status" }) }),
        /* @__PURE__ */ a4("dd", { children: "only its status, or a heartbeat" })
      ] }),
      /* @__PURE__ */ a4("div", { children: [
        /* @__PURE__ */ a4("dt", { children: /* @__PURE__ */ a4(Shape, { d: "m8 1 6 7-6 7-6-7z", of: "event" }) }),
        /* @__PURE__ */ a4("dd", { children: "an Event" })
      ] }),
      /* @__PURE__ */ a4("div", { children: [
        /* @__PURE__ */ a4("dt", { children: /* @__PURE__ */ a4("span", { class: "hatched" }) }),
        /* @__PURE__ */ a4("dd", { children: "not known: a gap, a pause, pruned, or not counted yet" })
      ] })
    ] }),
    /* @__PURE__ */ a4("p", { children: "A number is that many marks in one. Bars grow by the square root of what they count. Hover reads; press and drag scrubs; on the strip Shift and drag selects a window." })
  ] });
}
function Shape({ d: d4, of: name }) {
  return /* @__PURE__ */ a4("svg", { width: "16", height: "16", viewBox: "0 0 16 16", class: `shape c-${name}`, "aria-hidden": "true", children: /* @__PURE__ */ a4("path", { d: d4, fill: "currentColor" }) });
}
function Spoken() {
  return /* @__PURE__ */ a4("p", { class: `told${announced.value ? " shown" : ""}`, role: "status", "aria-live": "polite", children: announced.value });
}
var fading = 0;
x2(() => {
  if (!announced.value) return;
  clearTimeout(fading);
  fading = setTimeout(() => {
    announced.value = "";
  }, 4e3);
});

// src/tales.tsx
var ofThis = (answer, uid2) => answer?.object.uid === uid2 ? answer : null;
function Blamed({ uid: uid2, at: at2 }) {
  const answer = ofThis(blame.answer.value, uid2);
  if (!answer) return blame.failed.value ? /* @__PURE__ */ a4("p", { class: "error", children: blame.failed.value }) : /* @__PURE__ */ a4("p", { class: "busy", children: "The versions are folded…" });
  const lines2 = answer.lines.filter((l4) => !l4.folded), folded = answer.lines.length - lines2.length;
  return /* @__PURE__ */ a4($, { children: [
    /* @__PURE__ */ a4("pre", { class: "blame", tabIndex: 0, "aria-label": "YAML with the version that set each line", children: lines2.map((l4, i4) => {
      const origin = answer.origins[l4.origin], same = i4 > 0 && lines2[i4 - 1]?.origin === l4.origin;
      return /* @__PURE__ */ a4("span", { class: `line${origin && origin.seq === at2 ? " here" : ""}`, title: origin ? originText(origin) : "", children: [
        /* @__PURE__ */ a4("span", { class: "who", children: origin && !same ? /* @__PURE__ */ a4("button", { type: "button", class: "when", onClick: () => look2(origin.seq, origin.time), children: short2(origin) }) : null }),
        /* @__PURE__ */ a4("span", { children: l4.text })
      ] }, i4);
    }) }),
    folded > 0 ? /* @__PURE__ */ a4("p", { class: "faint", children: [
      count(folded),
      " lines of bookkeeping are folded."
    ] }) : null,
    /* @__PURE__ */ a4(Command, { text: answer.command })
  ] });
}
var short2 = (o5) => `${o5.earlier ? "≤ " : ""}${o5.latest ? "≥ " : ""}${brief(o5.time, whole2.value?.to ?? o5.time)} ${o5.manager || "?"}`;
var originText = (o5) => `${o5.earlier ? "set then or before: " : o5.latest ? "set then, or by a version that the record missed: " : ""}${full(o5.time)}, seq:${o5.seq}, ${o5.manager ? `by ${o5.manager}` : "writer not proved"}`;
function Told({ uid: uid2 }) {
  const answer = ofThis(story.answer.value, uid2);
  if (!answer) return story.failed.value ? /* @__PURE__ */ a4("p", { class: "error", children: story.failed.value }) : /* @__PURE__ */ a4("p", { class: "busy", children: "The story is read…" });
  const rows = answer.rows ?? [], hidden = Object.entries(answer.hidden ?? {}).filter(([, n3]) => n3 > 0);
  return /* @__PURE__ */ a4($, { children: [
    /* @__PURE__ */ a4(Rollouts, {}),
    /* @__PURE__ */ a4(Section, { title: "What happened in the window", note: count(rows.length + (answer.more ?? 0)), children: [
      rows.length === 0 ? /* @__PURE__ */ a4("p", { class: "faint", children: "Nothing. Widen the window with −." }) : null,
      /* @__PURE__ */ a4("ol", { class: "changes", children: rows.map((r4) => /* @__PURE__ */ a4("li", { onClick: (e4) => {
        if (!e4.target.closest("button")) look2(r4.seq, r4.time, of(r4));
      }, children: /* @__PURE__ */ a4("p", { class: "line-head", children: [
        /* @__PURE__ */ a4(When, { seq: r4.seq, time: r4.time, more: r4 }),
        r4.estimated ? /* @__PURE__ */ a4("span", { class: "faint", children: "estimated" }) : null,
        " ",
        /* @__PURE__ */ a4(Class, { of: r4.class }),
        " ",
        /* @__PURE__ */ a4("span", { class: "subject", children: [
          /* @__PURE__ */ a4("span", { class: "kind", children: r4.kind }),
          " ",
          /* @__PURE__ */ a4("b", { children: named(r4) })
        ] }),
        r4.event ? /* @__PURE__ */ a4("span", { children: [
          r4.event.reason,
          r4.event.count && r4.event.count !== "1" ? ` ×${r4.event.count}` : "",
          ": ",
          r4.event.message
        ] }) : /* @__PURE__ */ a4(Writer, { manager: r4.manager })
      ] }) }, r4.seq)) }),
      (answer.more ?? 0) > 0 ? /* @__PURE__ */ a4("p", { class: "faint", children: [
        count(answer.more ?? 0),
        " more are not shown: narrow the window."
      ] }) : null,
      hidden.length > 0 ? /* @__PURE__ */ a4("p", { class: "faint", children: [
        "Only counted: ",
        hidden.map(([c4, n3]) => `${count(n3)} ${c4}`).join(", "),
        "."
      ] }) : null
    ] }),
    /* @__PURE__ */ a4(Command, { text: answer.command })
  ] });
}
var within = () => Number(story.asked.value?.params.to ?? 0) <= (whole2.value?.to ?? 0);
function Rollouts() {
  const rollouts = story.answer.value?.rollouts ?? [];
  if (rollouts.length === 0) return null;
  return /* @__PURE__ */ a4(Section, { title: "Rollouts", note: count(rollouts.length), children: /* @__PURE__ */ a4("ol", { class: "rollouts", children: rollouts.map((r4, i4) => /* @__PURE__ */ a4("li", { children: [
    /* @__PURE__ */ a4("span", { class: "kind", children: r4.kind }),
    " ",
    /* @__PURE__ */ a4("b", { children: r4.name ? named(r4) : "" }),
    " ",
    r4.revision ? `revision ${r4.revision}` : "",
    " ",
    r4.start ? /* @__PURE__ */ a4(When, { seq: r4.start.seq, time: r4.start.time }) : "began before the window",
    r4.end ? /* @__PURE__ */ a4($, { children: [
      " to ",
      /* @__PURE__ */ a4(When, { seq: r4.end.seq, time: r4.end.time })
    ] }) : null,
    ": ",
    /* @__PURE__ */ a4("b", { children: r4.outcome || `not done when the ${within() ? "window" : "record"} ends` }),
    " ",
    r4.start ? /* @__PURE__ */ a4(Writer, { manager: r4.start.manager }) : null,
    (r4.troubles ?? []).map((t4, k4) => /* @__PURE__ */ a4("p", { class: "badness", children: [
      t4.reason,
      ": ",
      t4.message
    ] }, k4))
  ] }, i4)) }) });
}
function Near({ uid: uid2 }) {
  const answer = ofThis(nearby.answer.value, uid2), all3 = useSignal(false);
  if (!answer) return nearby.failed.value ? /* @__PURE__ */ a4("p", { class: "error", children: nearby.failed.value }) : /* @__PURE__ */ a4("p", { class: "busy", children: "The namespace is looked at…" });
  const { rows, rowsTotal, others, othersTotal } = answer;
  return /* @__PURE__ */ a4($, { children: [
    answer.unknown ? /* @__PURE__ */ a4("p", { class: "unknown", children: [
      /* @__PURE__ */ a4("b", { children: "No change can be named as the last one before." }),
      " ",
      answer.unknown
    ] }) : null,
    /* @__PURE__ */ a4(Section, { title: "Changed around it in the hour before", note: rows.length < rowsTotal ? `${count(rows.length)} of ${count(rowsTotal)}` : count(rowsTotal), children: [
      rows.length === 0 ? /* @__PURE__ */ a4("p", { class: "faint", children: "Nothing that is linked with it." }) : null,
      /* @__PURE__ */ a4(Rows2, { rows })
    ] }),
    othersTotal > 0 ? /* @__PURE__ */ a4("p", { children: /* @__PURE__ */ a4("button", { type: "button", class: "more", "aria-expanded": all3.value, onClick: () => {
      all3.value = !all3.value;
    }, children: [
      count(othersTotal),
      " other ",
      othersTotal === 1 ? "change" : "changes",
      " in the namespace and of objects without one"
    ] }) }) : null,
    all3.value ? /* @__PURE__ */ a4(Rows2, { rows: others }) : null,
    all3.value && othersTotal > others.length ? /* @__PURE__ */ a4("p", { class: "faint", children: [
      "The newest ",
      count(others.length),
      " are shown."
    ] }) : null,
    /* @__PURE__ */ a4(Command, { text: answer.command })
  ] });
}

// src/object.tsx
var tabs = ["change", "nearby", "yaml", "blame", "story", "versions"];
var titles = { change: "Change", nearby: "Nearby", yaml: "YAML", blame: "Blame", story: "Story", versions: "Versions" };
var nothing = O(() => focus.value.uid === "" && focus.value.name === "");
function Inspector() {
  const shows = tab.value, o5 = object.answer.value;
  if (nothing.value) return /* @__PURE__ */ a4("p", { class: "empty", children: "Choose an object: click a lane, or press / and type its name." });
  if (!o5) return object.failed.value ? /* @__PURE__ */ a4("p", { class: "error", children: object.failed.value }) : /* @__PURE__ */ a4("p", { class: "busy", children: "The object is folded…" });
  return /* @__PURE__ */ a4("article", { class: `object${object.busy.value ? " stale" : ""}`, children: [
    /* @__PURE__ */ a4(Head, { o: o5 }),
    /* @__PURE__ */ a4("div", { class: "tabs", role: "tablist", "aria-label": "Of this object", children: tabs.map((t4) => /* @__PURE__ */ a4("button", { type: "button", role: "tab", id: `tab-${t4}`, "aria-controls": "tabpanel", "aria-selected": shows === t4, onClick: () => move({ tab: t4 }), children: titles[t4] }, t4)) }),
    /* @__PURE__ */ a4("div", { role: "tabpanel", id: "tabpanel", "aria-labelledby": `tab-${shows}`, tabIndex: 0, children: shows === "yaml" ? /* @__PURE__ */ a4(Yaml, { lines: o5.yaml ?? [] }) : shows === "blame" ? /* @__PURE__ */ a4(Blamed, { uid: o5.object.uid, at: o5.delta?.seq }) : shows === "story" ? /* @__PURE__ */ a4(Told, { uid: o5.object.uid }) : shows === "versions" ? /* @__PURE__ */ a4(Versions, { o: o5 }) : shows === "nearby" ? /* @__PURE__ */ a4(Near, { uid: o5.object.uid }) : /* @__PURE__ */ a4(Changed, { o: o5 }) }),
    shows === "change" || shows === "yaml" ? /* @__PURE__ */ a4(Command, { text: o5.command }) : null
  ] });
}
function Head({ o: o5 }) {
  const r4 = o5.object, at2 = cursor.value ?? o5.delta?.time ?? null, gone = o5.exists === false || o5.delta?.type === "Deleted";
  return /* @__PURE__ */ a4("header", { class: "object-head", children: [
    /* @__PURE__ */ a4("h1", { children: [
      /* @__PURE__ */ a4("span", { class: "kind", children: r4.kind }),
      " ",
      /* @__PURE__ */ a4("span", { class: "whole-name", children: r4.name })
    ] }),
    /* @__PURE__ */ a4("p", { class: "faint", children: [
      r4.namespace ? /* @__PURE__ */ a4($, { children: [
        "in ",
        /* @__PURE__ */ a4("b", { children: r4.namespace }),
        " · "
      ] }) : null,
      /* @__PURE__ */ a4("span", { title: "UID: a life of this name", children: r4.uid }),
      r4.resourceVersion ? ` · resourceVersion ${r4.resourceVersion}` : ""
    ] }),
    gone ? /* @__PURE__ */ a4("p", { class: "gone", children: [
      o5.delta?.type === "Deleted" ? "Deleted at this instant." : "Not there at this instant.",
      " Step to its ",
      o5.previous !== null ? "previous" : "next",
      " version to see it."
    ] }) : null,
    /* @__PURE__ */ a4("p", { class: "steps", children: [
      /* @__PURE__ */ a4("button", { type: "button", disabled: o5.previous === null, onClick: () => walk("previous", "object"), title: "Previous version (←)", children: "← previous" }),
      /* @__PURE__ */ a4("span", { children: [
        o5.delta ? /* @__PURE__ */ a4($, { children: [
          "version of ",
          /* @__PURE__ */ a4(When, { seq: o5.delta.seq, time: o5.delta.time })
        ] }) : null,
        o5.delta && at2 && at2 - o5.delta.time > 1500 ? /* @__PURE__ */ a4("span", { class: "faint", children: [
          " ",
          span(at2 - o5.delta.time),
          " before the instant"
        ] }) : null
      ] }),
      /* @__PURE__ */ a4("button", { type: "button", disabled: o5.next === null || live.value, onClick: () => walk("next", "object"), title: "Next version (→)", children: "next →" })
    ] }),
    /* @__PURE__ */ a4(Holes, { of: o5.incomplete ?? [] })
  ] });
}
var bookkeeping = (c4) => /^\/metadata\/(managedFields|generation|resourceVersion)(\/|$)/.test(c4.path);
function Differences({ diff }) {
  const open2 = useSignal(false), own = diff.filter((c4) => !bookkeeping(c4)), rest2 = diff.length - own.length;
  return /* @__PURE__ */ a4($, { children: [
    /* @__PURE__ */ a4(Diff, { changes: open2.value ? diff : own }),
    rest2 > 0 ? /* @__PURE__ */ a4("p", { children: /* @__PURE__ */ a4("button", { type: "button", class: "more", "aria-expanded": open2.value, onClick: () => {
      open2.value = !open2.value;
    }, children: open2.value ? "fold the bookkeeping" : `bookkeeping of the API server: ${count(rest2)} ${rest2 === 1 ? "path" : "paths"} folded` }) }) : null
  ] });
}
function unchanged(o5) {
  if (o5.delta?.type === "Added") return "The object was created with this version.";
  if (o5.delta?.type === "Deleted") return "The object was deleted.";
  if ((o5.incomplete ?? []).some((i4) => i4.kind === "pruned")) return "What changed is not known: the version before is on a day that is not on record.";
  return "No field changed: the version is a copy that the recorder stored.";
}
function Changed({ o: o5 }) {
  const d4 = o5.delta, diff = o5.diff ?? [];
  return /* @__PURE__ */ a4($, { children: [
    d4 ? /* @__PURE__ */ a4(Section, { title: "What changed", note: /* @__PURE__ */ a4($, { children: [
      /* @__PURE__ */ a4(Class, { of: d4.class }),
      " ",
      /* @__PURE__ */ a4(Writer, { manager: d4.manager, evidence: d4.managerEvidence, hint: d4.hint })
    ] }), children: diff.length > 0 ? /* @__PURE__ */ a4(Differences, { diff }) : /* @__PURE__ */ a4("p", { class: "faint", children: unchanged(o5) }) }) : null,
    /* @__PURE__ */ a4(Belongs, { o: o5 })
  ] });
}
function Belongs({ o: o5 }) {
  const r4 = related.answer.value, known = o5.incomplete ?? [];
  if (related.failed.value && !related.busy.value) return /* @__PURE__ */ a4("p", { class: "error", children: related.failed.value });
  if (!r4 || related.asked.value?.params.uid !== o5.object.uid) return /* @__PURE__ */ a4("p", { class: "busy", children: "Events, owners and owned are looked up…" });
  return /* @__PURE__ */ a4("div", { class: related.busy.value ? "stale" : "", children: [
    /* @__PURE__ */ a4(Events, { r: r4 }),
    /* @__PURE__ */ a4(Owns, { r: r4 }),
    /* @__PURE__ */ a4(Holes, { of: (r4.incomplete ?? []).filter((i4) => !known.some((k4) => k4.text === i4.text)) })
  ] });
}
function Events({ r: r4 }) {
  const events = r4.events ?? [];
  if (events.length === 0) return null;
  return /* @__PURE__ */ a4(Section, { title: "Events", note: (r4.eventsTotal ?? 0) > events.length ? `${count(events.length)} of ${count(r4.eventsTotal ?? 0)}` : count(events.length), children: /* @__PURE__ */ a4("table", { class: "events", children: /* @__PURE__ */ a4("tbody", { children: events.map((e4, i4) => /* @__PURE__ */ a4("tr", { class: e4.type === "Warning" ? "warning" : "", children: [
    /* @__PURE__ */ a4("td", { class: "time", children: full(e4.time).slice(11, 19) }),
    /* @__PURE__ */ a4("td", { children: [
      /* @__PURE__ */ a4("b", { children: e4.reason }),
      e4.count && e4.count !== "1" ? ` ×${e4.count}` : "",
      " ",
      e4.message
    ] })
  ] }, i4)) }) }) });
}
function Owns({ r: r4 }) {
  const owners = r4.owners ?? [], owned = r4.owned ?? [], more = (r4.ownedTotal ?? owned.length) - owned.length;
  if (owners.length + owned.length === 0) return null;
  return /* @__PURE__ */ a4(Section, { title: "Owners and owned", children: [
    owners.length > 0 ? /* @__PURE__ */ a4("p", { class: "refs", children: [
      "owned by ",
      owners.map((o5) => /* @__PURE__ */ a4(Link, { to: o5 }, o5.uid))
    ] }) : null,
    owned.length > 0 ? /* @__PURE__ */ a4("p", { class: "refs", children: [
      "owns ",
      owned.map((o5) => /* @__PURE__ */ a4(Link, { to: o5 }, o5.uid)),
      more > 0 ? /* @__PURE__ */ a4("span", { class: "faint", children: [
        " and ",
        count(more),
        " more"
      ] }) : null
    ] }) : null
  ] });
}
function Yaml({ lines: lines2 }) {
  const open2 = useSignal(false), folded = lines2.filter((l4) => l4.folded).length, seen = open2.value ? lines2 : lines2.filter((l4) => !l4.folded);
  if (lines2.length === 0) return /* @__PURE__ */ a4("p", { class: "empty", children: "There is no object at this instant." });
  return /* @__PURE__ */ a4($, { children: [
    folded > 0 ? /* @__PURE__ */ a4("p", { children: /* @__PURE__ */ a4("button", { type: "button", class: "more", "aria-expanded": open2.value, onClick: () => {
      open2.value = !open2.value;
    }, children: open2.value ? "fold managedFields" : `managedFields: ${count(folded)} lines folded` }) }) : null,
    /* @__PURE__ */ a4("pre", { class: "yaml", tabIndex: 0, "aria-label": "YAML", children: seen.map((l4, i4) => /* @__PURE__ */ a4("span", { class: `line ${{ added: "added", changed: "changed", removed: "removed" }[l4.mark ?? ""] ?? ""}`, title: l4.path, children: [
      l4.text,
      "\n"
    ] }, i4)) })
  ] });
}
function Versions({ o: o5 }) {
  const of2 = versions.asked.value?.params, same = of2?.resource === o5.object.resource && of2.namespace === o5.object.namespace && of2.name === o5.object.name;
  const answer = same ? versions.answer.value : null, rows = (answer?.rows ?? []).filter((r4) => r4.uid === o5.object.uid), others = (answer?.rows ?? []).length - rows.length;
  if (!answer) return versions.failed.value ? /* @__PURE__ */ a4("p", { class: "error", children: versions.failed.value }) : /* @__PURE__ */ a4("p", { class: "busy", children: "The versions are read…" });
  return /* @__PURE__ */ a4($, { children: [
    /* @__PURE__ */ a4(Rows2, { rows, at: o5.delta?.seq, plain: true }),
    answer.next ? /* @__PURE__ */ a4("button", { type: "button", class: "more", onClick: () => {
      morePages.value++;
    }, children: [
      count(rows.length),
      " are shown; show 100 more"
    ] }) : /* @__PURE__ */ a4("p", { class: "faint", children: [
      count(rows.length),
      " ",
      rows.length === 1 ? "version is" : "versions are",
      " on record",
      others > 0 ? `, and ${count(others)} of other lives of this name` : "",
      "."
    ] }),
    /* @__PURE__ */ a4(Command, { text: answer.command })
  ] });
}

// src/app.tsx
var panels = [["now", "Overview"], ["object", "Object"], ["changes", "Changes"], ["compare", "Compare"], ["session", "Session"]];
function Page() {
  useKeys();
  const shows = panel.value, small = useSignal("panel");
  return /* @__PURE__ */ a4($, { children: [
    /* @__PURE__ */ a4(Bar, { help: () => {
      helping.value = true;
    } }),
    /* @__PURE__ */ a4(Strip, {}),
    /* @__PURE__ */ a4(Filters, {}),
    /* @__PURE__ */ a4("nav", { class: "tabs switch", "aria-label": "Part of the page", children: [
      /* @__PURE__ */ a4("button", { type: "button", "aria-pressed": small.value === "panel", onClick: () => {
        small.value = "panel";
      }, children: "Instant" }),
      /* @__PURE__ */ a4("button", { type: "button", "aria-pressed": small.value === "lanes", onClick: () => {
        small.value = "lanes";
      }, children: "Lanes" })
    ] }),
    /* @__PURE__ */ a4("main", { class: `views small-${small.value}`, children: [
      /* @__PURE__ */ a4(Lanes, {}),
      /* @__PURE__ */ a4("section", { class: "panel", "aria-label": "The instant", children: [
        /* @__PURE__ */ a4("nav", { class: "tabs", "aria-label": "Panels", children: panels.map(([p5, text]) => /* @__PURE__ */ a4("button", { type: "button", "aria-current": shows === p5 ? "page" : void 0, onClick: () => move({ panel: p5 }), children: text }, p5)) }),
        /* @__PURE__ */ a4("div", { class: "panel-body", tabIndex: 0, role: "region", "aria-label": panels.find(([p5]) => p5 === shows)?.[1], children: shows === "object" ? /* @__PURE__ */ a4(Inspector, {}) : shows === "changes" ? /* @__PURE__ */ a4(ChangeList, {}) : shows === "compare" ? /* @__PURE__ */ a4(Comparing, {}) : shows === "session" ? /* @__PURE__ */ a4(Sessions, {}) : /* @__PURE__ */ a4(Now, {}) })
      ] })
    ] }),
    /* @__PURE__ */ a4(Help, {}),
    /* @__PURE__ */ a4(Spoken, {})
  ] });
}
function Gate() {
  const token2 = useSignal(""), uid2 = useSignal(cluster.peek()), shared = location.protocol !== "http:";
  const enter2 = () => {
    if (uid2.value !== cluster.peek()) move({ cluster: uid2.value.trim() });
    setToken(token2.value.trim());
  };
  return /* @__PURE__ */ a4("main", { class: "gate", children: [
    /* @__PURE__ */ a4("h1", { children: "kuberewind" }),
    /* @__PURE__ */ a4("p", { class: "error", children: locked.value }),
    /* @__PURE__ */ a4("p", { children: /* @__PURE__ */ a4("button", { type: "button", onClick: again, children: "try again" }) }),
    shared ? null : /* @__PURE__ */ a4("p", { children: [
      "Run ",
      /* @__PURE__ */ a4("code", { children: "replay open" }),
      " where the server runs: it opens this page with a new link. A link can be used once, within a minute."
    ] }),
    /* @__PURE__ */ a4("form", { onSubmit: (e4) => {
      e4.preventDefault();
      if (token2.value) enter2();
    }, children: [
      shared ? /* @__PURE__ */ a4("p", { children: /* @__PURE__ */ a4("label", { children: [
        "UID of the cluster, if the server has several: ",
        /* @__PURE__ */ a4("input", { value: uid2.value, onInput: (e4) => {
          uid2.value = e4.currentTarget.value;
        } })
      ] }) }) : null,
      /* @__PURE__ */ a4("label", { children: [
        shared ? "Give the bearer token with which you use the cluster:" : "Or give a token of this server:",
        " ",
        /* @__PURE__ */ a4("input", { type: "password", autocomplete: "off", value: token2.value, onInput: (e4) => {
          token2.value = e4.currentTarget.value;
        } })
      ] }),
      " ",
      /* @__PURE__ */ a4("button", { type: "submit", children: "go on" })
    ] })
  ] });
}
function Choice2({ of: of2 }) {
  return /* @__PURE__ */ a4("main", { class: "gate", children: [
    /* @__PURE__ */ a4("h1", { children: "kuberewind" }),
    /* @__PURE__ */ a4("p", { children: [
      "This server has the records of ",
      count(of2.clusters.length),
      " clusters. Which one do you want to see?"
    ] }),
    /* @__PURE__ */ a4("ul", { class: "clusters", children: of2.clusters.map((c4) => /* @__PURE__ */ a4("li", { children: [
      /* @__PURE__ */ a4("button", { type: "button", onClick: () => move({ cluster: c4.uid }), children: /* @__PURE__ */ a4("b", { children: c4.name || c4.uid }) }),
      " ",
      /* @__PURE__ */ a4("span", { class: "faint", children: c4.uid })
    ] }, c4.uid)) })
  ] });
}
function Failed() {
  return /* @__PURE__ */ a4("main", { class: "gate", children: [
    /* @__PURE__ */ a4("h1", { children: "kuberewind" }),
    /* @__PURE__ */ a4("p", { class: "error", children: meta.failed.value }),
    cluster.value ? /* @__PURE__ */ a4("p", { children: /* @__PURE__ */ a4("button", { type: "button", onClick: () => move({ cluster: "" }), children: "leave this cluster" }) }) : null
  ] });
}
function App() {
  if (locked.value) return /* @__PURE__ */ a4(Gate, {});
  if (meta.answer.value && !meta.answer.value.cluster) return /* @__PURE__ */ a4(Choice2, { of: meta.answer.value });
  return meta.answer.value || !meta.failed.value ? /* @__PURE__ */ a4(Page, {}) : /* @__PURE__ */ a4(Failed, {});
}
Object.assign(globalThis, { kuberewind: { drawn: drawn2, idle: () => idle() && !gliding.peek(), span: () => [whole2.peek()?.from, whole2.peek()?.to] } });
async function start2() {
  if (taken) await admit(taken);
  admitted.value = true;
  await Promise.resolve();
  const page2 = document.getElementById("page");
  page2.textContent = "";
  Q(/* @__PURE__ */ a4(App, {}), page2);
  await Promise.all([follow(() => begun2.peek()), watch()]);
}
void start2();
